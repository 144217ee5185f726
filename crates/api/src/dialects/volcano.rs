//! Volcano. Its annotation is also kube-batch's, so the scheduler a pod asks for tells the two apart.

use std::sync::Arc;

use crate::dialects::dialect::GroupKind;
use crate::dialects::kube_batch;
use crate::dialects::labels::Marks;
use crate::dialects::terms::{Level, Terms, min_resources, pod_group};
use crate::foreign::json::{Findings, Json};
use crate::pod::request::GpuNames;
use crate::pod::spec::PodSpec;

pub(crate) const GROUP: &str = "scheduling.k8s.io/group-name";
const ROLE: &str = "volcano.sh/task-spec";
const QUEUE: &str = "scheduling.volcano.sh/queue-name";
const MIN: &str = "scheduling.volcano.sh/group-min-member";
const PREEMPTIBLE: &str = "volcano.sh/preemptable";

pub(crate) const KINDS: &[GroupKind] =
    &[GroupKind::pod_group("scheduling.volcano.sh", &["v1beta1"])];

pub(crate) fn group<'a>(marks: Marks<'a>, spec: &PodSpec) -> Option<&'a str> {
    marks.annotation(GROUP).filter(|_| !kube_batch::asked_for(spec))
}

pub(crate) fn role(marks: Marks<'_>) -> Option<&str> {
    marks.either(ROLE)
}

pub(crate) fn terms(object: &Json<'_>, spec: &Json<'_>, gpus: &GpuNames) -> Terms {
    let (required, preferred) = topology(spec);
    let by_role = spec.pairs("minTaskMember");
    let (labels, annotations) = object.marks();
    let marks = Marks { labels: &labels, annotations: &annotations };
    let declared = Terms {
        min_by_role: by_role
            .iter()
            .filter_map(|(name, _)| Some(((*name).into(), spec.get("minTaskMember")?.count(name)?)))
            .collect(),
        min_resources: min_resources(spec, gpus),
        required,
        preferred,
        unknown: inner_groups(spec).into_iter().collect(),
        ..pod_group(spec)
    };
    declared.over(pod_terms(marks, object.findings()))
}

/// Groups within the group, each with a size and a place of its own.
fn inner_groups(spec: &Json<'_>) -> Option<Arc<str>> {
    let any = !spec.list("subGroupPolicy").is_empty();
    any.then(|| "it has groups of its own (`subGroupPolicy`), and such are not known".into())
}

/// How close members are to be: within a tier by number or by name. Mode `hard` is the default.
fn topology(spec: &Json<'_>) -> (Option<Level>, Option<Level>) {
    let Some(wanted) = spec.get("networkTopology") else { return (None, None) };
    let name = wanted.text("highestTierName").map(Level::key);
    let level = name.or_else(|| wanted.count("highestTierAllowed").map(Level::Tier));
    match wanted.text("mode") {
        None | Some("hard") => (level, None),
        Some("soft") => (None, level),
        Some(other) => {
            wanted.error(format!("the mode `{other}` is neither hard nor soft"));
            (None, None)
        }
    }
}

/// What a pod, its owner or a PodGroup says by annotation.
pub(crate) fn pod_terms(marks: Marks<'_>, findings: &Findings) -> Terms {
    Terms {
        min: marks.count(MIN, findings),
        queue: marks.either(QUEUE).map(Into::into),
        preemptible: marks.flag(PREEMPTIBLE, findings),
        ..Terms::default()
    }
}
