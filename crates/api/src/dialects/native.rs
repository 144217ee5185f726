//! Kubernetes' own groups, whose API changes with every release: 1.35 has groups inside a Workload (`v1alpha1`, named
//! by `spec.workloadRef`), 1.36 makes them objects (`v1alpha2`, `spec.schedulingGroup`), 1.37 renames the disruption
//! mode (`v1beta1`, `v1alpha3`). Either spelling of a field is read in every version.

use std::sync::Arc;

use crate::dialects::dialect::GroupKind;
use crate::dialects::terms::{Level, Terms};
use crate::foreign::json::Json;
use crate::pod::spec::{NEVER, PodSpec};

pub(crate) const KINDS: &[GroupKind] =
    &[GroupKind::pod_group("scheduling.k8s.io", &["v1beta1", "v1alpha3", "v1alpha2"])];

pub(crate) const WORKLOADS: &[GroupKind] = &[GroupKind {
    group: "scheduling.k8s.io",
    versions: &["v1alpha1"],
    kind: "Workload",
    plural: "workloads",
    namespaced: true,
}];

pub(crate) fn group(spec: &PodSpec) -> Option<&str> {
    let name = spec.scheduling_group.as_ref().map(|group| group.pod_group_name.as_str());
    name.filter(|name| !name.is_empty())
}

/// A group inside a Workload; each replica of it is a gang of its own.
pub(crate) fn workload_group(spec: &PodSpec) -> Option<String> {
    let group = spec.workload_ref.as_ref().filter(|group| !group.name.is_empty())?;
    let parts = [&group.name, &group.pod_group, &group.pod_group_replica_key];
    let given: Vec<&str> =
        parts.into_iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    Some(given.join("/"))
}

pub(crate) fn terms(spec: &Json<'_>) -> Terms {
    check_disruption_mode(spec);
    let constraints = spec.get("schedulingConstraints");
    let keys = constraints.map(|at| at.list("topology")).unwrap_or_default();
    Terms {
        min: spec.need("schedulingPolicy").and_then(|policy| min(&policy)),
        priority_class: spec.text("priorityClassName").map(Into::into),
        priority: spec.whole("priority"),
        required: keys.first().and_then(|key| key.text("key")).map(Level::key),
        never_preempts: spec.text("preemptionPolicy") == Some(NEVER),
        unsupported: composite(spec).into_iter().collect(),
        ..Terms::default()
    }
}

/// A composite group starts all of its groups together, or a minimum of them: alone, this group would be a part of a
/// gang.
fn composite(spec: &Json<'_>) -> Option<Arc<str>> {
    let parent = spec.text("parentCompositePodGroupName").filter(|name| !name.is_empty())?;
    let words = format!("it is part of the composite group {parent}, which is not supported");
    Some(words.into())
}

/// The group of this name, or the only group.
pub(crate) fn workload_terms(spec: &Json<'_>, name: Option<&str>) -> Terms {
    let groups = spec.list("podGroups");
    let is_it = |group: &&Json<'_>| name.is_none() || group.text("name") == name;
    let mut found = groups.iter().filter(is_it);
    let (Some(group), None) = (found.next(), found.next()) else {
        let which = name.map_or(String::new(), |name| format!(" called `{name}`"));
        let reason = format!("must hold exactly one group{which}");
        spec.findings().push(&spec.path_of("podGroups"), reason);
        return Terms::default();
    };
    Terms { min: group.need("policy").and_then(|policy| min(&policy)), ..Terms::default() }
}

/// The minimum number of members. Under the basic policy every pod is scheduled alone, which is a minimum of one.
fn min(policy: &Json<'_>) -> Option<u32> {
    match (policy.get("gang"), policy.get("basic")) {
        (Some(gang), None) => {
            let min = gang.count("minCount");
            if min.is_none() && gang.get("minCount").is_none() {
                gang.missing("minCount");
            }
            min
        }
        (None, Some(_)) => Some(1),
        _ => {
            policy.error("must say `gang` or `basic`");
            None
        }
    }
}

/// Checks the disruption mode, which is not used: a word in 1.36, a mapping from 1.37 on.
fn check_disruption_mode(spec: &Json<'_>) {
    let Some(mode) = spec.get("disruptionMode") else { return };
    match mode.value().as_str() {
        Some("PodGroup" | "Pod") => {}
        Some(other) => mode.error(format!("`{other}` is neither Pod nor PodGroup")),
        None => drop(mode.get("all")),
    }
}
