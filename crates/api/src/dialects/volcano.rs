//! Volcano. Its annotation is also kube-batch's, and the scheduler name of a pod tells the two apart.

use std::sync::Arc;

use crate::dialects::dialect::GroupKind;
use crate::dialects::kube_batch;
use crate::dialects::labels::Meta;
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

pub(crate) fn group<'a>(meta: Meta<'a>, spec: &PodSpec) -> Option<&'a str> {
    meta.annotation(GROUP).filter(|_| !kube_batch::asked_for(spec))
}

pub(crate) fn role(meta: Meta<'_>) -> Option<&str> {
    meta.either(ROLE)
}

pub(crate) fn terms(object: &Json<'_>, spec: &Json<'_>, gpus: &GpuNames) -> Terms {
    let (required, preferred) = topology(spec);
    let by_role = spec.pairs("minTaskMember");
    let (labels, annotations) = object.labels_and_annotations();
    let meta = Meta { labels: &labels, annotations: &annotations };
    let declared = Terms {
        min_by_role: by_role
            .iter()
            .filter_map(|(name, _)| Some(((*name).into(), spec.get("minTaskMember")?.count(name)?)))
            .collect(),
        min_resources: min_resources(spec, gpus),
        required,
        preferred,
        unsupported: inner_groups(spec).into_iter().collect(),
        ..pod_group(spec)
    };
    declared.over(pod_terms(meta, object.findings()))
}

/// Subgroups of the group, each with its own size and topology.
fn inner_groups(spec: &Json<'_>) -> Option<Arc<str>> {
    let any = !spec.list("subGroupPolicy").is_empty();
    any.then(|| "it has subgroups (`subGroupPolicy`), which are not supported".into())
}

/// The topology constraint of the members: a tier by number or by name. Mode `hard` is the default.
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

/// The terms that annotations of a pod, its owner or a PodGroup declare.
pub(crate) fn pod_terms(meta: Meta<'_>, findings: &Findings) -> Terms {
    Terms {
        min: meta.count(MIN, findings),
        queue: meta.either(QUEUE).map(Into::into),
        preemptible: meta.flag(PREEMPTIBLE, findings),
        ..Terms::default()
    }
}
