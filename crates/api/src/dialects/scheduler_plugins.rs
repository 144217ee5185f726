//! scheduler-plugins' coscheduling. Most operators can make this PodGroup under any scheduler's name.

use crate::dialects::dialect::GroupKind;
use crate::dialects::labels::Marks;
use crate::dialects::terms::{Terms, min_resources, pod_group, seconds};
use crate::foreign::json::Json;
use crate::pod::request::GpuNames;

const GROUP: &str = "scheduling.x-k8s.io/pod-group";

pub(crate) const KINDS: &[GroupKind] =
    &[GroupKind::pod_group("scheduling.x-k8s.io", &["v1alpha1"])];

pub(crate) fn group(marks: Marks<'_>) -> Option<&str> {
    marks.label(GROUP)
}

pub(crate) fn terms(spec: &Json<'_>, gpus: &GpuNames) -> Terms {
    Terms {
        min: spec.count("minMember"),
        min_resources: min_resources(spec, gpus),
        timeout: seconds(spec, "scheduleTimeoutSeconds"),
        ..pod_group(spec)
    }
}
