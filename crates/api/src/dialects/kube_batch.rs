//! kube-batch, under both of its API groups. Retired, but its annotation lives on in Volcano.

use super::marks::Marks;
use super::terms::{Terms, pod_group};
use super::volcano::GROUP;
use super::{Findings, GroupKind, Json};
use crate::pod::PodSpec;

const SCHEDULER: &str = "kube-batch";
const MIN: &str = "scheduling.k8s.io/group-min-member";

pub(super) const KINDS: &[GroupKind] = &[
    GroupKind::pod_group("scheduling.sigs.dev", &["v1alpha2"]),
    GroupKind::pod_group("scheduling.incubator.k8s.io", &["v1alpha1"]),
];

/// Whether a pod asks for this scheduler by name.
pub(super) fn asked_for(spec: &PodSpec) -> bool {
    spec.scheduler_name.as_deref() == Some(SCHEDULER)
}

pub(super) fn group<'a>(marks: Marks<'a>, spec: &PodSpec) -> Option<&'a str> {
    marks.annotation(GROUP).filter(|_| asked_for(spec))
}

pub(super) fn terms(spec: &Json<'_>) -> Terms {
    pod_group(spec)
}

pub(super) fn pod_terms(marks: Marks<'_>, findings: &Findings) -> Terms {
    Terms { min: marks.count(MIN, findings), ..Terms::default() }
}
