//! Finds the group of a pod and the terms of a group, in whichever dialect they are declared.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::dialects::labels::Meta;
use crate::foreign::json::{Findings, Json};
use crate::pod::request::GpuNames;
use crate::pod::spec::PodSpec;

use crate::dialects::terms::Terms;

/// A format in which a system declares gangs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
pub enum Dialect {
    /// Muster's own annotations and labels, with or without a Gang object.
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
    /// Every dialect, in the order in which [`group_of`] tries them.
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

/// The group that a pod declares.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
pub struct GroupRef {
    /// The dialect in which the pod declares it.
    pub dialect: Dialect,
    /// The namespace of the group.
    pub namespace: String,
    /// The name of the group; `WORKLOAD/GROUP` or `WORKLOAD/GROUP/REPLICA` for groups inside a Workload.
    pub name: String,
}

impl GroupRef {
    /// Its namespace and name.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
    /// The name of the object that contains its terms.
    pub fn object(&self) -> &str {
        self.name.split_once('/').map_or(&self.name, |(object, _)| object)
    }
}

/// A kind of object that contains groups, for a host to find out whether it is served.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct GroupKind {
    /// The API group.
    pub group: &'static str,
    /// Supported versions, newest first.
    pub versions: &'static [&'static str],
    /// The kind.
    pub kind: &'static str,
    /// The plural name in URLs.
    pub plural: &'static str,
    /// Whether it is namespaced.
    pub namespaced: bool,
}

impl GroupKind {
    /// A namespaced kind called PodGroup.
    pub(super) const fn pod_group(group: &'static str, versions: &'static [&'static str]) -> Self {
        Self { group, versions, kind: "PodGroup", plural: "podgroups", namespaced: true }
    }
}

/// The kinds of objects that contain a dialect's groups.
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

/// The group of a pod, if it declares one in any dialect.
///
/// A pod may have the meta of several dialects, from tools that are unaware of each other. Muster's own come first,
/// then the fields of the pod itself, then labels (which users write), then annotations (which controllers write):
/// scheduler-plugins, Koordinator, Volcano or kube-batch (one annotation for both, told apart by the scheduler name),
/// KAI.
pub fn group_of(
    labels: &BTreeMap<String, String>,
    annotations: &BTreeMap<String, String>,
    spec: &PodSpec,
    namespace: &str,
) -> Option<GroupRef> {
    let meta = Meta { labels, annotations };
    let named = |dialect| {
        let name = match dialect {
            Dialect::Muster => crate::dialects::muster::group(meta).map(str::to_owned),
            Dialect::Native => crate::dialects::native::group(spec).map(str::to_owned),
            Dialect::Workload => crate::dialects::native::workload_group(spec),
            Dialect::SchedulerPlugins => {
                crate::dialects::scheduler_plugins::group(meta).map(str::to_owned)
            }
            Dialect::Koordinator => crate::dialects::koordinator::group(meta).map(str::to_owned),
            Dialect::Volcano => crate::dialects::volcano::group(meta, spec).map(str::to_owned),
            Dialect::KubeBatch => crate::dialects::kube_batch::group(meta, spec).map(str::to_owned),
            Dialect::Kai => crate::dialects::kai::group(meta, spec).map(str::to_owned),
        };
        name.map(|name| GroupRef { dialect, namespace: namespace.to_owned(), name })
    };
    Dialect::ALL.into_iter().find_map(named)
}

/// The role of a pod in its group, in dialects that declare one: Muster's, Volcano's, KAI's, then Spark's. Operators
/// have labels of their own, see [`crate::workloads::role_of_pod`].
pub fn role_of<'a>(
    labels: &'a BTreeMap<String, String>,
    annotations: &'a BTreeMap<String, String>,
) -> Option<&'a str> {
    let meta = Meta { labels, annotations };
    let own = crate::dialects::muster::role(meta)
        .or_else(|| crate::dialects::volcano::role(meta))
        .or_else(|| crate::dialects::kai::role(meta));
    own.or_else(|| meta.label(SPARK_ROLE))
}

/// Spark's own label on drivers and executors. Its operator creates a group and no known kind of workload.
const SPARK_ROLE: &str = "spark-role";

/// Whether a group is sized by `minResources`: its minimum is one member, and it gives the resources of all of them.
/// Its other members are created once the first one runs.
pub fn is_sized_by_resources(object: &Value) -> bool {
    let spec = |name: &str| object.get("spec").and_then(|spec| spec.get(name));
    let least = spec("minMember").and_then(Value::as_u64);
    let all = spec("minResources").and_then(Value::as_object);
    least.is_some_and(|least| least <= 1) && all.is_some_and(|all| !all.is_empty())
}

/// The terms of a group, from the object that contains it. A Workload must contain a single group; where it contains
/// several, use [`terms_of`].
pub fn terms(dialect: Dialect, object: &Value, gpus: &GpuNames) -> Result<Terms, Vec<String>> {
    read(dialect, None, object, gpus)
}

/// The terms of one group, from an object that may contain others as well.
pub fn terms_of(group: &GroupRef, object: &Value, gpus: &GpuNames) -> Result<Terms, Vec<String>> {
    let inner = group.name.split('/').nth(1);
    read(group.dialect, inner, object, gpus)
}

/// The groups that start together with this one or not at all, itself included, sorted and each once, as an annotation
/// of one of its pods or of its object declares. `None` where neither has that annotation.
pub fn merged_groups(
    group: &GroupRef,
    annotations: &BTreeMap<String, String>,
) -> Option<Vec<GroupRef>> {
    match group.dialect {
        Dialect::Koordinator => crate::dialects::koordinator::merged_groups(
            group,
            Meta { labels: &BTreeMap::new(), annotations },
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

/// The terms that a pod's own annotations and labels declare for its group. They are all there is where no object
/// contains the group; where one does, Koordinator's override it ([`Terms::over`]), and those of other dialects only
/// fill in what it leaves open.
pub fn pod_terms(
    dialect: Dialect,
    labels: &BTreeMap<String, String>,
    annotations: &BTreeMap<String, String>,
) -> Result<Terms, Vec<String>> {
    let findings = Findings::default();
    let meta = Meta { labels, annotations };
    let terms = match dialect {
        Dialect::Muster => crate::dialects::muster::pod_terms(meta, &findings),
        Dialect::Koordinator => crate::dialects::koordinator::pod_terms(meta, &findings),
        Dialect::Volcano => crate::dialects::volcano::pod_terms(meta, &findings),
        Dialect::KubeBatch => crate::dialects::kube_batch::pod_terms(meta, &findings),
        Dialect::Kai => crate::dialects::kai::pod_terms(meta, &findings),
        Dialect::Native | Dialect::Workload | Dialect::SchedulerPlugins => Terms::default(),
    };
    findings.settle(terms)
}
