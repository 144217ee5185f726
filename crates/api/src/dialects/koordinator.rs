//! Koordinator: a PodGroup under scheduler-plugins' old API group, or annotations alone. Where both are there,
//! the annotations win.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_core::time::Span;
use serde_json::Value;

use crate::dialects::dialect::{GroupKind, GroupRef};
use crate::dialects::labels::{Marks, field};
use crate::dialects::terms::{Level, Terms, min_resources, pod_group, seconds};
use crate::foreign::json::{Findings, Json};
use crate::pod::request::GpuNames;

/// In the order Koordinator looks them up; the second is deprecated, the last is an annotation.
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

pub(crate) fn group(marks: Marks<'_>) -> Option<&str> {
    let label = LABELS.iter().find_map(|name| marks.label(name));
    label.or_else(|| marks.annotation(NAME))
}

pub(crate) fn terms(object: &Json<'_>, spec: &Json<'_>, gpus: &GpuNames) -> Terms {
    let declared = Terms {
        min_resources: min_resources(spec, gpus),
        timeout: seconds(spec, "scheduleTimeoutSeconds"),
        ..pod_group(spec)
    };
    let (labels, annotations) = object.marks();
    let marks = Marks { labels: &labels, annotations: &annotations };
    pod_terms(marks, object.findings()).over(declared)
}

/// What the annotations of a pod, or of a PodGroup, say of its gang.
pub(crate) fn pod_terms(marks: Marks<'_>, findings: &Findings) -> Terms {
    let (required, preferred) = gathering(marks, findings);
    Terms {
        min: marks.count(MIN, findings).or_else(|| marks.count(MIN_LABEL, findings)),
        total: marks.count(TOTAL, findings),
        joined: groups(marks, findings),
        queue: marks.label(QUOTA).map(Into::into),
        timeout: marks.annotation(WAITING).and_then(|text| go_duration(text, WAITING, findings)),
        required,
        preferred,
        preemptible: marks.flag(PREEMPTIBLE, findings),
        unheard: unheard(marks),
        ..Terms::default()
    }
}

/// How members wait for each other. Muster's start together and stop together, and whoever is made again later joins those
/// that run: Koordinator's `Strict` and `once-satisfied`.
fn unheard(marks: Marks<'_>) -> Vec<Arc<str>> {
    let mode = marks.annotation(MODE).filter(|mode| *mode != "Strict");
    let policies = [marks.annotation(MATCH_POLICY), marks.annotation(MATCH_POLICY_ALIAS)];
    let policy = policies.into_iter().flatten().next().filter(|policy| *policy != "once-satisfied");
    let mode = mode.map(|mode| format!("`mode: {mode}`: its members start together all the same"));
    let policy = policy
        .map(|policy| format!("`match-policy: {policy}`: members made later join those that run"));
    mode.into_iter().chain(policy).map(Into::into).collect()
}

/// The gangs that start together, as a JSON list of `namespace/name`.
fn groups(marks: Marks<'_>, findings: &Findings) -> Vec<Arc<str>> {
    let Some(text) = marks.annotation(GROUPS) else { return Vec::new() };
    match listed(text) {
        Ok(names) => names.into_iter().map(Into::into).collect(),
        Err(why) => {
            findings.push(&field(GROUPS), why);
            Vec::new()
        }
    }
}

/// The names in a list, or what is wrong with it.
fn listed(text: &str) -> Result<Vec<String>, String> {
    let names: Vec<String> = serde_json::from_str(text)
        .map_err(|error| format!("is not a JSON list of names: {error}"))?;
    let is_odd = |name: &&String| name.split('/').count() > 2 || name.split('/').any(str::is_empty);
    match names.iter().find(is_odd) {
        Some(odd) => Err(format!("`{odd}` is not a name such as namespace/name")),
        None => Ok(names),
    }
}

/// The groups that the annotations of a group or a pod say start together: itself among them, in order, each once. What
/// cannot be understood joins nobody here; whoever reads the terms is told.
pub(crate) fn joined(group: &GroupRef, marks: Marks<'_>) -> Option<Vec<GroupRef>> {
    let names = listed(marks.annotation(GROUPS)?).unwrap_or_else(|_| vec![group.full_name()]);
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

/// The layers all members must and should be gathered in; the last of each kind is the narrowest.
fn gathering(marks: Marks<'_>, findings: &Findings) -> (Option<Level>, Option<Level>) {
    let Some(text) = marks.annotation(TOPOLOGY) else { return (None, None) };
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

/// A duration as Go prints it, such as `1m30s`, `1.5h` or `500ms`.
fn go_duration(text: &str, name: &str, findings: &Findings) -> Option<Span> {
    let span = go_span(text);
    if span.is_none() {
        findings.push(&field(name), format!("`{text}` is not a duration such as 90s or 1h30m"));
    }
    span
}

fn go_span(text: &str) -> Option<Span> {
    let units: BTreeMap<&str, f64> = BTreeMap::from([
        ("h", 3.6e6),
        ("m", 6e4),
        ("s", 1e3),
        ("ms", 1.0),
        ("us", 1e-3),
        ("µs", 1e-3),
        ("ns", 1e-6),
    ]);
    let (mut rest, mut ms) = (text, 0.0);
    if rest == "0" {
        return Some(Span::ZERO);
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        ms += number * units.get(&rest[..end])?;
        rest = &rest[end..];
    }
    (!text.is_empty()).then(|| Span(ms.round() as u64))
}
