//! What makes pods a gang: where to look, and what a gang made of it is called.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use muster_api::dialects::{self, Dialect, GroupKind, GroupRef};
use muster_api::spell_name;
use muster_api::workloads::{self, WorkloadKind};
use muster_core::gang::GangSpec;

use crate::api::discovery::WatchedKind;
use crate::cache::store::Key;
use crate::constraints::pod_constraints::PodConstraints;

/// Why a kind is watched.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum KindRole {
    Topology,
    Queue,
    Pool,
    Order,
    Gang,
    PriorityClass,
    /// A queue of another system, by place in the list of those.
    ForeignQueue(usize),
    /// Its labels say whose pods are meant.
    Namespace,
    VolumeClaim,
    Volume,
    StorageClass,
    /// It says how many volumes its node can attach.
    CsiNode,
    /// It asks for room ahead of its pods.
    Request,
    /// It says what pods a request asks room for.
    PodTemplate,
    /// It holds groups of a dialect. Some dialects have several such kinds, by place in their list.
    Group(Dialect, usize),
    /// Pods are made by it.
    Workload(WorkloadKind),
}

impl KindRole {
    /// Whether nobody can be decided about before everything of the kind was seen. What other systems bring matters to
    /// those who use them alone.
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

/// How names of gangs end that are made of requests.
pub(crate) const REQUEST: &str = ".request";

const fn own(kind: &'static str, plural: &'static str) -> WatchedKind {
    WatchedKind { group: MUSTER, versions: &["v1alpha1"], kind, plural }
}

const fn core(kind: &'static str, plural: &'static str) -> WatchedKind {
    WatchedKind { group: "", versions: &["v1"], kind, plural }
}

const fn as_wanted(kind: &GroupKind) -> WatchedKind {
    WatchedKind { group: kind.group, versions: kind.versions, kind: kind.kind, plural: kind.plural }
}

/// Every kind that is watched where it is served.
pub(crate) fn wanted() -> Vec<(KindRole, WatchedKind)> {
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

/// Why pods are one gang.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum GangSource {
    /// They name a Gang, which may or may not be there.
    Gang { namespace: Arc<str>, name: Arc<str> },
    /// They name a group of another dialect.
    Group(GroupRef),
    /// They name groups that start together or not at all: in order, each once.
    Joined(Arc<[GroupRef]>),
    /// One workload made them.
    Owner {
        kind: WorkloadKind,
        namespace: Arc<str>,
        /// The gang's name among those of that kind.
        gang: Arc<str>,
        /// The workload.
        owner: Arc<str>,
        /// The workload that has the templates.
        templates: (WorkloadKind, Arc<str>),
    },
    /// There are none yet: a ProvisioningRequest asks for their room.
    Request { namespace: Arc<str>, name: Arc<str> },
    /// There is only one.
    Pod { namespace: Arc<str>, name: Arc<str> },
}

impl GangSource {
    /// What the gang is called: as the Gang, or else so that no two kinds of origin can meet. What other systems take for
    /// a name need not be one here, and the gang's object must have one.
    pub(crate) fn gang_name(&self) -> Arc<str> {
        let (namespace, name): (&str, String) = match self {
            Self::Gang { namespace, name } => (namespace, name.to_string()),
            Self::Group(group) => {
                let name = group.name.replace('/', ".");
                (&group.namespace, format!("{name}.{}", dialect_name(group.dialect)))
            }
            // Groups that list others are another gang, also where the first of them is the same. The groups are of
            // namespaces that need not trust each other: no list can be found that has the name of another.
            Self::Joined(groups) => {
                let first = groups.first().expect("some start together");
                let stem: String = first.name.chars().take(STEM).collect();
                (&first.namespace, format!("{stem}.{}{JOINED}", digest_of(&in_a_row(groups))))
            }
            Self::Owner { kind, namespace, gang, .. } => {
                (namespace, format!("{gang}.{}", format!("{kind:?}").to_lowercase()))
            }
            // These two are objects, whose names are names.
            Self::Request { namespace, name } => {
                return format!("{namespace}/{name}{REQUEST}").into();
            }
            Self::Pod { namespace, name } => return format!("{namespace}/{name}.pod").into(),
        };
        format!("{namespace}/{}", spell_name(&name)).into()
    }
}

/// How names of gangs end that are made of several groups. No Gang may be called so.
pub(crate) const JOINED: &str = ".joined";

/// How much of a group's name is in the name of a gang of several, so that none of it is cut off.
const STEM: usize = 180;

/// Half of a SHA-256 in hexadecimal: two lists that have the same are not found by trying.
fn digest_of(text: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    digest.as_ref()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The full names of groups, one after another.
fn in_a_row(groups: &[GroupRef]) -> String {
    groups.iter().map(GroupRef::full_name).collect::<Vec<_>>().join("+")
}

fn dialect_name(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Muster => "gang",
        Dialect::Native => "podgroup",
        Dialect::Workload => "workload",
        Dialect::SchedulerPlugins => "scheduler-plugins",
        Dialect::Koordinator => "koordinator",
        Dialect::Volcano => "volcano",
        Dialect::KubeBatch => "kube-batch",
        Dialect::Kai => "kai",
    }
}

impl fmt::Display for GangSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gang { name, .. } => write!(f, "gang/{name}"),
            Self::Group(group) => write!(f, "{}/{}", dialect_name(group.dialect), group.name),
            Self::Joined(groups) => {
                let dialect = groups.first().map_or("", |first| dialect_name(first.dialect));
                write!(f, "{dialect}/{}", in_a_row(groups))
            }
            Self::Owner { kind, owner, .. } => write!(f, "{kind:?}/{owner}"),
            Self::Request { name, .. } => write!(f, "provisioningrequest/{name}"),
            Self::Pod { name, .. } => write!(f, "pod/{name}"),
        }
    }
}

/// A gang, and the role of each of its pods.
#[derive(Debug)]
pub(crate) struct BuiltGang {
    pub(crate) spec: GangSpec,
    pub(crate) roles: BTreeMap<Key, u16>,
    /// Which one of its role each pod is.
    pub(crate) ranks: BTreeMap<Key, u32>,
    /// What the ties of each pod come to.
    pub(crate) tied: BTreeMap<Key, PodConstraints>,
    /// Why it cannot go anywhere now.
    pub(crate) waits: Option<String>,
    /// Whether some of its pods are yet to come, and only their template was seen.
    pub(crate) imagined: bool,
    /// For how many members it is sized that do not exist.
    pub(crate) absent: u32,
    /// How many members of each role its owner is to make at most, where that is known.
    pub(crate) wanted: Vec<Option<u32>>,
    /// What it asks for that Muster does not do, and can be done without.
    pub(crate) unheard: Vec<Arc<str>>,
}
