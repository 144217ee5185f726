//! The kinds that are watched, and the role of each in the host.

use muster_api::dialects::{self, Dialect, GroupKind};
use muster_api::workloads::{self, WorkloadKind};

use crate::api::discovery::WatchedKind;

/// The role of a watched kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum KindRole {
    Topology,
    Queue,
    Pool,
    Order,
    Gang,
    PriorityClass,
    /// A queue of another system, by index in the list of those.
    ForeignQueue(usize),
    /// Its labels are matched by namespace selectors.
    Namespace,
    VolumeClaim,
    Volume,
    StorageClass,
    /// It has the number of volumes that its node can attach.
    CsiNode,
    /// A ProvisioningRequest: it asks for capacity ahead of its pods.
    Request,
    /// It has the pods that a ProvisioningRequest asks capacity for.
    PodTemplate,
    /// A group object of a dialect. Some dialects have several such kinds, by index in their list.
    Group(Dialect, usize),
    /// A workload that creates pods.
    Workload(WorkloadKind),
}

impl KindRole {
    /// Whether nothing can be decided before the kind is listed. The kinds of other systems only matter to gangs that use
    /// them.
    pub(crate) fn is_needed_by_all(self) -> bool {
        match self {
            Self::ForeignQueue(_) | Self::Request | Self::Group(..) => false,
            Self::Workload(kind) => kind == WorkloadKind::Job,
            Self::Topology
            | Self::Queue
            | Self::Pool
            | Self::Order
            | Self::Gang
            | Self::PriorityClass
            | Self::Namespace
            | Self::VolumeClaim
            | Self::Volume
            | Self::StorageClass
            | Self::CsiNode
            | Self::PodTemplate => true,
        }
    }
}

const MUSTER: &str = "muster.sh";

const fn own(kind: &'static str, plural: &'static str) -> WatchedKind {
    WatchedKind { group: MUSTER, versions: &["v1alpha1"], kind, plural }
}

const fn core(kind: &'static str, plural: &'static str) -> WatchedKind {
    WatchedKind { group: "", versions: &["v1"], kind, plural }
}

const fn as_wanted(kind: &GroupKind) -> WatchedKind {
    WatchedKind { group: kind.group, versions: kind.versions, kind: kind.kind, plural: kind.plural }
}

/// Every kind that is watched where the API server serves it.
pub(crate) fn watched_kinds() -> Vec<(KindRole, WatchedKind)> {
    let mut wanted = vec![
        (KindRole::Topology, own("Topology", "topologies")),
        (KindRole::Queue, own("Queue", "queues")),
        (KindRole::Pool, own("Pool", "pools")),
        (KindRole::Order, own("Order", "orders")),
        (KindRole::Gang, own("Gang", "gangs")),
        (
            KindRole::PriorityClass,
            WatchedKind {
                group: "scheduling.k8s.io",
                versions: &["v1"],
                kind: "PriorityClass",
                plural: "priorityclasses",
            },
        ),
        (KindRole::Namespace, core("Namespace", "namespaces")),
        (KindRole::VolumeClaim, core("PersistentVolumeClaim", "persistentvolumeclaims")),
        (KindRole::Volume, core("PersistentVolume", "persistentvolumes")),
        (
            KindRole::StorageClass,
            WatchedKind {
                group: "storage.k8s.io",
                versions: &["v1"],
                kind: "StorageClass",
                plural: "storageclasses",
            },
        ),
        (
            KindRole::CsiNode,
            WatchedKind {
                group: "storage.k8s.io",
                versions: &["v1"],
                kind: "CSINode",
                plural: "csinodes",
            },
        ),
        (
            KindRole::Request,
            WatchedKind {
                group: "autoscaling.x-k8s.io",
                versions: &["v1"],
                kind: "ProvisioningRequest",
                plural: "provisioningrequests",
            },
        ),
        (KindRole::PodTemplate, core("PodTemplate", "podtemplates")),
    ];
    let queues = dialects::QUEUES.iter().enumerate();
    wanted.extend(queues.map(|(at, kind)| (KindRole::ForeignQueue(at), as_wanted(kind))));
    for dialect in Dialect::ALL.into_iter().filter(|dialect| *dialect != Dialect::Muster) {
        let kinds = dialects::kinds(dialect).iter().enumerate();
        wanted.extend(kinds.map(|(at, kind)| (KindRole::Group(dialect, at), as_wanted(kind))));
    }
    let workloads = workloads::kinds().iter().filter(|(kind, _)| *kind != WorkloadKind::Pod);
    wanted.extend(workloads.map(|(kind, at)| (KindRole::Workload(*kind), as_wanted(at))));
    wanted
}
