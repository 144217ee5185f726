//! KAI, where its pod grouper has marked the pods.

use crate::dialects::dialect::GroupKind;
use crate::dialects::labels::Marks;
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

/// The annotation's name is so plain that others may use it: it counts only with another sign of KAI.
pub(crate) fn group<'a>(marks: Marks<'a>, spec: &PodSpec) -> Option<&'a str> {
    let is_kai = spec.scheduler_name.as_deref() == Some(SCHEDULER) || marks.label(QUEUE).is_some();
    marks.annotation(GROUP).filter(|_| is_kai)
}

pub(crate) fn role(marks: Marks<'_>) -> Option<&str> {
    marks.label(ROLE)
}

/// Groups with inner groups are read as one gang whose roles are the inner groups that hold pods.
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

pub(crate) fn pod_terms(marks: Marks<'_>, findings: &Findings) -> Terms {
    Terms {
        min: marks.count(MIN, findings),
        queue: marks.label(QUEUE).map(Into::into),
        required: marks.annotation(REQUIRED).map(Level::key),
        preferred: marks.annotation(PREFERRED).map(Level::key),
        preemptible: marks.either(PREEMPTIBILITY).and_then(preemptibility),
        ..Terms::default()
    }
}
