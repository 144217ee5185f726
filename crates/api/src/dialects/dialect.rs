//! Gangs as other systems write them.
//!
//! One file per dialect, each knowing which mark on a pod names its group, which object holds the group's terms,
//! and how that object is told what became of it. Only this much is common to all: a pod's group ([`group_of`]),
//! a group's [`Terms`], and the [`status`] written back. Nothing is fetched, watched or written here.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::dialects::labels::Marks;
use crate::foreign::json::{Findings, Json};
use crate::pod::request::GpuNames;
use crate::pod::spec::PodSpec;

use crate::dialects::terms::Terms;

/// A way of writing gangs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
pub enum Dialect {
    /// Muster's own marks, with or without a Gang object.
    Muster,
    /// `scheduling.k8s.io` PodGroups, from Kubernetes 1.36 on.
    Native,
    /// `scheduling.k8s.io` Workloads of Kubernetes 1.35, with the groups inside.
    Workload,
    /// scheduler-plugins' coscheduling.
    SchedulerPlugins,
    /// Koordinator, by PodGroup or by annotations alone.
    Koordinator,
    /// Volcano.
    Volcano,
    /// kube-batch, under either of its API groups.
    KubeBatch,
    /// KAI, where its pod grouper runs.
    Kai,
}

impl Dialect {
    /// Every dialect, in the order [`group_of`] asks them.
    pub const ALL: [Self; 8] = [
        Self::Muster,
        Self::Native,
        Self::Workload,
        Self::SchedulerPlugins,
        Self::Koordinator,
        Self::Volcano,
        Self::KubeBatch,
        Self::Kai,
    ];
}

/// The group a pod says it belongs to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
pub struct GroupRef {
    /// In whose words.
    pub dialect: Dialect,
    /// Where the group is.
    pub namespace: String,
    /// What it is called; `WORKLOAD/GROUP` or `WORKLOAD/GROUP/REPLICA` for groups inside a Workload.
    pub name: String,
}

impl GroupRef {
    /// Where it is and what it is called, in one.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
    /// The name of the object that holds its terms.
    pub fn object(&self) -> &str {
        self.name.split_once('/').map_or(&self.name, |(object, _)| object)
    }
}

/// A kind of object that holds groups, for a host to find out whether it is served.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct GroupKind {
    /// The API group.
    pub group: &'static str,
    /// Versions that are understood, newest first.
    pub versions: &'static [&'static str],
    /// The kind.
    pub kind: &'static str,
    /// Its name in URLs.
    pub plural: &'static str,
    /// Whether it lives in namespaces.
    pub namespaced: bool,
}

impl GroupKind {
    /// A kind of namespaced object called PodGroup.
    pub(super) const fn pod_group(group: &'static str, versions: &'static [&'static str]) -> Self {
        Self { group, versions, kind: "PodGroup", plural: "podgroups", namespaced: true }
    }
}

/// The kinds of objects that hold a dialect's groups.
pub fn kinds(dialect: Dialect) -> &'static [GroupKind] {
    match dialect {
        Dialect::Muster => crate::dialects::muster::KINDS,
        Dialect::Native => crate::dialects::native::KINDS,
        Dialect::Workload => crate::dialects::native::WORKLOADS,
        Dialect::SchedulerPlugins => crate::dialects::scheduler_plugins::KINDS,
        Dialect::Koordinator => crate::dialects::koordinator::KINDS,
        Dialect::Volcano => crate::dialects::volcano::KINDS,
        Dialect::KubeBatch => crate::dialects::kube_batch::KINDS,
        Dialect::Kai => crate::dialects::kai::KINDS,
    }
}

/// The group a pod belongs to, if it says so in any dialect.
///
/// A pod may bear several marks, left by tools that know nothing of each other. What its owner wrote for Muster
/// comes first, then the fields of the pod itself, then labels (which users write), then annotations (which
/// controllers write): scheduler-plugins, Koordinator, Volcano or kube-batch (one annotation for both, told apart
/// by the scheduler asked for), KAI.
pub fn group_of(
    labels: &BTreeMap<String, String>,
    annotations: &BTreeMap<String, String>,
    spec: &PodSpec,
    namespace: &str,
) -> Option<GroupRef> {
    let marks = Marks { labels, annotations };
    let named = |dialect| {
        let name = match dialect {
            Dialect::Muster => crate::dialects::muster::group(marks).map(str::to_owned),
            Dialect::Native => crate::dialects::native::group(spec).map(str::to_owned),
            Dialect::Workload => crate::dialects::native::workload_group(spec),
            Dialect::SchedulerPlugins => {
                crate::dialects::scheduler_plugins::group(marks).map(str::to_owned)
            }
            Dialect::Koordinator => crate::dialects::koordinator::group(marks).map(str::to_owned),
            Dialect::Volcano => crate::dialects::volcano::group(marks, spec).map(str::to_owned),
            Dialect::KubeBatch => {
                crate::dialects::kube_batch::group(marks, spec).map(str::to_owned)
            }
            Dialect::Kai => crate::dialects::kai::group(marks, spec).map(str::to_owned),
        };
        name.map(|name| GroupRef { dialect, namespace: namespace.to_owned(), name })
    };
    Dialect::ALL.into_iter().find_map(named)
}

/// The part a pod plays in its group, where a dialect has a mark for that: Muster's, Volcano's, KAI's, then Spark's.
/// Operators have labels of their own, see [`crate::workloads::role_of_pod`].
pub fn role_of<'a>(
    labels: &'a BTreeMap<String, String>,
    annotations: &'a BTreeMap<String, String>,
) -> Option<&'a str> {
    let marks = Marks { labels, annotations };
    let own = crate::dialects::muster::role(marks)
        .or_else(|| crate::dialects::volcano::role(marks))
        .or_else(|| crate::dialects::kai::role(marks));
    own.or_else(|| marks.label(SPARK_ROLE))
}

/// Spark's own mark on drivers and executors. Its operator hands over a group and no workload that is known.
const SPARK_ROLE: &str = "spark-role";

/// Whether a group's size is what its members take together: it says that one member will do, and what all of them take.
/// Its other members are made when the first one runs.
pub fn is_sized_by_resources(object: &Value) -> bool {
    let spec = |name: &str| object.get("spec").and_then(|spec| spec.get(name));
    let least = spec("minMember").and_then(Value::as_u64);
    let all = spec("minResources").and_then(Value::as_object);
    least.is_some_and(|least| least <= 1) && all.is_some_and(|all| !all.is_empty())
}

/// The terms of a group, from the object that holds it. A Workload must hold a single group; where it holds
/// several, ask [`terms_of`].
pub fn terms(dialect: Dialect, object: &Value, gpus: &GpuNames) -> Result<Terms, Vec<String>> {
    read(dialect, None, object, gpus)
}

/// The terms of one group, from the object that holds it and maybe others.
pub fn terms_of(group: &GroupRef, object: &Value, gpus: &GpuNames) -> Result<Terms, Vec<String>> {
    let inner = group.name.split('/').nth(1);
    read(group.dialect, inner, object, gpus)
}

/// The groups that start together with this one or not at all, itself among them, in order and each once: as one of its
/// pods says by its annotations, or its object by its own. `None` where that is not said there.
pub fn joined(group: &GroupRef, annotations: &BTreeMap<String, String>) -> Option<Vec<GroupRef>> {
    match group.dialect {
        Dialect::Koordinator => crate::dialects::koordinator::joined(
            group,
            Marks { labels: &BTreeMap::new(), annotations },
        ),
        _ => None,
    }
}

fn read(
    dialect: Dialect,
    inner: Option<&str>,
    object: &Value,
    gpus: &GpuNames,
) -> Result<Terms, Vec<String>> {
    let findings = Findings::default();
    let object = Json::root(object, &findings);
    let Some(spec) = object.get("spec") else {
        object.missing("spec");
        return findings.settle(Terms::default());
    };
    let terms = match dialect {
        Dialect::Muster => crate::dialects::muster::terms(&spec),
        Dialect::Native => crate::dialects::native::terms(&spec),
        Dialect::Workload => crate::dialects::native::workload_terms(&spec, inner),
        Dialect::SchedulerPlugins => crate::dialects::scheduler_plugins::terms(&spec, gpus),
        Dialect::Koordinator => crate::dialects::koordinator::terms(&object, &spec, gpus),
        Dialect::Volcano => crate::dialects::volcano::terms(&object, &spec, gpus),
        Dialect::KubeBatch => crate::dialects::kube_batch::terms(&spec),
        Dialect::Kai => crate::dialects::kai::terms(&spec),
    };
    findings.settle(terms)
}

/// The terms a pod's own marks set for its group. They are all there is where no object holds the group; where
/// one does, Koordinator's marks win over it ([`Terms::over`]), the others' only fill in what it leaves open.
pub fn pod_terms(
    dialect: Dialect,
    labels: &BTreeMap<String, String>,
    annotations: &BTreeMap<String, String>,
) -> Result<Terms, Vec<String>> {
    let findings = Findings::default();
    let marks = Marks { labels, annotations };
    let terms = match dialect {
        Dialect::Muster => crate::dialects::muster::pod_terms(marks, &findings),
        Dialect::Koordinator => crate::dialects::koordinator::pod_terms(marks, &findings),
        Dialect::Volcano => crate::dialects::volcano::pod_terms(marks, &findings),
        Dialect::KubeBatch => crate::dialects::kube_batch::pod_terms(marks, &findings),
        Dialect::Kai => crate::dialects::kai::pod_terms(marks, &findings),
        Dialect::Native | Dialect::Workload | Dialect::SchedulerPlugins => Terms::default(),
    };
    findings.settle(terms)
}
