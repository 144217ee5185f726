//! scheduler-plugins' coscheduling. Most operators can make this PodGroup under any scheduler's name.

use super::marks::Marks;
use super::terms::{Terms, min_resources, pod_group, seconds};
use super::{GpuNames, GroupKind, Json};

const GROUP: &str = "scheduling.x-k8s.io/pod-group";

pub(super) const KINDS: &[GroupKind] =
    &[GroupKind::pod_group("scheduling.x-k8s.io", &["v1alpha1"])];

pub(super) fn group(marks: Marks<'_>) -> Option<&str> {
    marks.label(GROUP)
}

pub(super) fn terms(spec: &Json<'_>, gpus: &GpuNames) -> Terms {
    Terms {
        min: spec.count("minMember"),
        min_resources: min_resources(spec, gpus),
        timeout: seconds(spec, "scheduleTimeoutSeconds"),
        ..pod_group(spec)
    }
}
