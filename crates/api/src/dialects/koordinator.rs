//! Koordinator: a PodGroup under scheduler-plugins' old API group, or annotations alone. Where both exist, the
//! annotations override the PodGroup.

use std::sync::Arc;

use serde_json::Value;

use crate::dialects::dialect::{GroupKind, GroupRef};
use crate::dialects::labels::{Meta, field};
use crate::dialects::terms::{Level, Terms, check_schedule_timeout, min_resources, pod_group};
use crate::foreign::json::{Findings, Json};
use crate::pod::request::GpuNames;

/// In the order in which Koordinator looks them up; the second is deprecated, the last is an annotation.
const LABELS: [&str; 2] =
    ["pod-group.scheduling.sigs.k8s.io", "pod-group.scheduling.sigs.k8s.io/name"];
const NAME: &str = "gang.scheduling.koordinator.sh/name";
const MIN: &str = "gang.scheduling.koordinator.sh/min-available";
const MIN_LABEL: &str = "pod-group.scheduling.sigs.k8s.io/min-available";
const TOTAL: &str = "gang.scheduling.koordinator.sh/total-number";
const GROUPS: &str = "gang.scheduling.koordinator.sh/groups";
const WAITING: &str = "gang.scheduling.koordinator.sh/waiting-time";
const TOPOLOGY: &str = "gang.scheduling.koordinator.sh/network-topology-spec";
const MODE: &str = "gang.scheduling.koordinator.sh/mode";
const MATCH_POLICY: &str = "gang.scheduling.koordinator.sh/match-policy";
const MATCH_POLICY_ALIAS: &str = "pod-group.scheduling.sigs.k8s.io/match-policy";
const QUOTA: &str = "quota.scheduling.koordinator.sh/name";
const PREEMPTIBLE: &str = "quota.scheduling.koordinator.sh/preemptible";

pub(crate) const KINDS: &[GroupKind] =
    &[GroupKind::pod_group("scheduling.sigs.k8s.io", &["v1alpha1"])];

pub(crate) fn group(meta: Meta<'_>) -> Option<&str> {
    let label = LABELS.iter().find_map(|name| meta.label(name));
    label.or_else(|| meta.annotation(NAME))
}

pub(crate) fn terms(object: &Json<'_>, spec: &Json<'_>, gpus: &GpuNames) -> Terms {
    check_schedule_timeout(spec);
    let declared = Terms { min_resources: min_resources(spec, gpus), ..pod_group(spec) };
    let (labels, annotations) = object.labels_and_annotations();
    let meta = Meta { labels: &labels, annotations: &annotations };
    pod_terms(meta, object.findings()).over(declared)
}

/// The terms that annotations of a pod, or of a PodGroup, declare.
pub(crate) fn pod_terms(meta: Meta<'_>, findings: &Findings) -> Terms {
    let (required, preferred) = gathering(meta, findings);
    check_waiting_time(meta, findings);
    Terms {
        min: meta.count(MIN, findings).or_else(|| meta.count(MIN_LABEL, findings)),
        total: meta.count(TOTAL, findings),
        merged_with: groups(meta, findings),
        queue: meta.label(QUOTA).map(Into::into),
        required,
        preferred,
        preemptible: meta.flag(PREEMPTIBLE, findings),
        ignored: ignored(meta),
        ..Terms::default()
    }
}

/// Modes of waiting that Muster does not support. Its members start together and stop together, and members that are
/// created later join those that run: Koordinator's `Strict` and `once-satisfied`.
fn ignored(meta: Meta<'_>) -> Vec<Arc<str>> {
    let mode = meta.annotation(MODE).filter(|mode| *mode != "Strict");
    let policies = [meta.annotation(MATCH_POLICY), meta.annotation(MATCH_POLICY_ALIAS)];
    let policy = policies.into_iter().flatten().next().filter(|policy| *policy != "once-satisfied");
    let mode = mode.map(|mode| format!("`mode: {mode}`: its members start together nevertheless"));
    let policy = policy.map(|policy| {
        format!("`match-policy: {policy}`: members created later join those that run")
    });
    mode.into_iter().chain(policy).map(Into::into).collect()
}

/// The groups that start together, as a JSON list of `namespace/name`.
fn groups(meta: Meta<'_>, findings: &Findings) -> Vec<Arc<str>> {
    let Some(text) = meta.annotation(GROUPS) else { return Vec::new() };
    match listed(text) {
        Ok(names) => names.into_iter().map(Into::into).collect(),
        Err(why) => {
            findings.push(&field(GROUPS), why);
            Vec::new()
        }
    }
}

/// The names in a list, or why it is invalid.
fn listed(text: &str) -> Result<Vec<String>, String> {
    let names: Vec<String> = serde_json::from_str(text)
        .map_err(|error| format!("is not a JSON list of names: {error}"))?;
    let is_odd = |name: &&String| name.split('/').count() > 2 || name.split('/').any(str::is_empty);
    match names.iter().find(is_odd) {
        Some(odd) => Err(format!("`{odd}` is not a name such as namespace/name")),
        None => Ok(names),
    }
}

/// The groups that an annotation of a group or a pod lists as starting together: the group itself included, sorted,
/// each once. An invalid list merges nothing here; it is reported when the terms are read.
pub(crate) fn merged_groups(group: &GroupRef, meta: Meta<'_>) -> Option<Vec<GroupRef>> {
    let names = listed(meta.annotation(GROUPS)?).unwrap_or_else(|_| vec![group.full_name()]);
    if names.is_empty() {
        return None;
    }
    let mut all = vec![group.clone()];
    all.extend(names.iter().map(|name| {
        let (namespace, name) = name.split_once('/').unwrap_or((&group.namespace, name));
        GroupRef { namespace: namespace.to_owned(), name: name.to_owned(), ..group.clone() }
    }));
    all.sort();
    all.dedup();
    Some(all)
}

/// The topology layers that all members must, and should, be placed in; the last of each kind is the narrowest.
fn gathering(meta: Meta<'_>, findings: &Findings) -> (Option<Level>, Option<Level>) {
    let Some(text) = meta.annotation(TOPOLOGY) else { return (None, None) };
    let spec: Value = match serde_json::from_str(text) {
        Ok(spec) => spec,
        Err(error) => {
            findings.push(&field(TOPOLOGY), format!("is not JSON: {error}"));
            return (None, None);
        }
    };
    let (mut required, mut preferred) = (None, None);
    for rule in Json::root(&spec, findings).list("gatherStrategy") {
        let Some(layer) = rule.text("layer").map(Level::key) else { continue };
        match rule.text("strategy") {
            Some("MustGather") => required = Some(layer),
            _ => preferred = Some(layer),
        }
    }
    (required, preferred)
}

/// Checks the waiting time, which is not used, as [`check_schedule_timeout`] does for PodGroups.
fn check_waiting_time(meta: Meta<'_>, findings: &Findings) {
    let Some(text) = meta.annotation(WAITING).filter(|text| !is_go_duration(text)) else { return };
    findings.push(&field(WAITING), format!("`{text}` is not a duration such as 90s or 1h30m"));
}

/// Whether a text is a duration as Go prints it, such as `1m30s`, `1.5h` or `500ms`.
fn is_go_duration(text: &str) -> bool {
    let mut rest = text;
    while !rest.is_empty() && text != "0" {
        let Some(digits) = rest.find(|c: char| !c.is_ascii_digit() && c != '.') else {
            return false;
        };
        let (number, unit) = rest.split_at(digits);
        let end = unit.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(unit.len());
        let is_unit = matches!(&unit[..end], "h" | "m" | "s" | "ms" | "us" | "µs" | "ns");
        if number.parse::<f64>().is_err() || !is_unit {
            return false;
        }
        rest = &unit[end..];
    }
    !text.is_empty()
}
