//! scheduler-plugins' coscheduling. Most operators can create this PodGroup with any scheduler's name.

use crate::dialects::dialect::GroupKind;
use crate::dialects::labels::Meta;
use crate::dialects::terms::{Terms, check_schedule_timeout, min_resources, pod_group};
use crate::foreign::json::Json;
use crate::pod::request::GpuNames;

const GROUP: &str = "scheduling.x-k8s.io/pod-group";

pub(crate) const KINDS: &[GroupKind] =
    &[GroupKind::pod_group("scheduling.x-k8s.io", &["v1alpha1"])];

pub(crate) fn group(meta: Meta<'_>) -> Option<&str> {
    meta.label(GROUP)
}

pub(crate) fn terms(spec: &Json<'_>, gpus: &GpuNames) -> Terms {
    check_schedule_timeout(spec);
    Terms {
        min: spec.count("minMember"),
        min_resources: min_resources(spec, gpus),
        ..pod_group(spec)
    }
}
