//! kube-batch, under both of its API groups. It is retired, but Volcano still uses its annotation.

use crate::dialects::dialect::GroupKind;
use crate::dialects::labels::Meta;
use crate::dialects::terms::{Terms, pod_group};
use crate::dialects::volcano::GROUP;
use crate::foreign::json::{Findings, Json};
use crate::pod::spec::PodSpec;

const SCHEDULER: &str = "kube-batch";
const MIN: &str = "scheduling.k8s.io/group-min-member";

pub(crate) const KINDS: &[GroupKind] = &[
    GroupKind::pod_group("scheduling.sigs.dev", &["v1alpha2"]),
    GroupKind::pod_group("scheduling.incubator.k8s.io", &["v1alpha1"]),
];

/// Whether a pod names this scheduler.
pub(crate) fn asked_for(spec: &PodSpec) -> bool {
    spec.scheduler_name.as_deref() == Some(SCHEDULER)
}

pub(crate) fn group<'a>(meta: Meta<'a>, spec: &PodSpec) -> Option<&'a str> {
    meta.annotation(GROUP).filter(|_| asked_for(spec))
}

pub(crate) fn terms(spec: &Json<'_>) -> Terms {
    pod_group(spec)
}

pub(crate) fn pod_terms(meta: Meta<'_>, findings: &Findings) -> Terms {
    Terms { min: meta.count(MIN, findings), ..Terms::default() }
}
