//! KAI, where its pod grouper has annotated the pods.

use crate::dialects::dialect::GroupKind;
use crate::dialects::labels::Meta;
use crate::dialects::terms::{Level, Terms, pod_group};
use crate::foreign::json::{Findings, Json};
use crate::pod::spec::PodSpec;

const SCHEDULER: &str = "kai-scheduler";
const GROUP: &str = "pod-group-name";
const ROLE: &str = "kai.scheduler/subgroup-name";
const QUEUE: &str = "kai.scheduler/queue";
const MIN: &str = "kai.scheduler/batch-min-member";
const REQUIRED: &str = "kai.scheduler/topology-required-placement";
const PREFERRED: &str = "kai.scheduler/topology-preferred-placement";
const PREEMPTIBILITY: &str = "kai.scheduler/preemptibility";

pub(crate) const KINDS: &[GroupKind] = &[GroupKind::pod_group("scheduling.run.ai", &["v2alpha2"])];

/// The name of the annotation is generic, and others may use it: it counts only with another sign of KAI.
pub(crate) fn group<'a>(meta: Meta<'a>, spec: &PodSpec) -> Option<&'a str> {
    let is_kai = spec.scheduler_name.as_deref() == Some(SCHEDULER) || meta.label(QUEUE).is_some();
    meta.annotation(GROUP).filter(|_| is_kai)
}

pub(crate) fn role(meta: Meta<'_>) -> Option<&str> {
    meta.label(ROLE)
}

/// A group with subgroups is read as one gang whose roles are the subgroups that contain pods.
pub(crate) fn terms(spec: &Json<'_>) -> Terms {
    let topology = spec.get("topologyConstraint");
    let level = |name| topology.as_ref().and_then(|at| at.text(name)).map(Level::key);
    let inner = spec.list("subGroups");
    let min_of = |group: &Json<'_>| Some((group.text("name")?.into(), group.count("minMember")?));
    Terms {
        min_by_role: inner.iter().filter_map(min_of).collect(),
        required: level("requiredTopologyLevel"),
        preferred: level("preferredTopologyLevel"),
        preemptible: preemptible(spec),
        ..pod_group(spec)
    }
}

fn preemptible(spec: &Json<'_>) -> Option<bool> {
    let written = spec.text("preemptibility")?;
    let read = preemptibility(written);
    if read.is_none() {
        let reason = format!("`{written}` is neither preemptible nor non-preemptible");
        spec.findings().push(&spec.path_of("preemptibility"), reason);
    }
    read
}

fn preemptibility(written: &str) -> Option<bool> {
    match written {
        "preemptible" => Some(true),
        "non-preemptible" => Some(false),
        _ => None,
    }
}

pub(crate) fn pod_terms(meta: Meta<'_>, findings: &Findings) -> Terms {
    Terms {
        min: meta.count(MIN, findings),
        queue: meta.label(QUEUE).map(Into::into),
        required: meta.annotation(REQUIRED).map(Level::key),
        preferred: meta.annotation(PREFERRED).map(Level::key),
        preemptible: meta.either(PREEMPTIBILITY).and_then(preemptibility),
        ..Terms::default()
    }
}
