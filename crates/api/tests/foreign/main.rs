//! Reads other systems' objects into gangs, and writes their statuses.

mod assembling;
mod dialects;
mod files;
mod merging;
mod never_panics;
mod owners;
mod pod_constraints;
mod pod_requests;
mod pod_rules;
mod statuses;
mod workloads;

use std::collections::BTreeMap;

use muster_core::constraint::{Constraints, Term, Test};
use muster_core::gang::Request;
use serde_json::Value;

/// One document, as users write it.
fn yaml(text: &str) -> Value {
    let mut objects =
        muster_api::foreign("a.yaml", text).unwrap_or_else(|f| panic!("{f:?}\n{text}"));
    assert_eq!(objects.len(), 1, "{text}");
    objects.remove(0)
}

/// The result of every case under its name, for one snapshot of all of them.
fn table(cases: &[(&str, &str)], result: impl Fn(&Value) -> String) -> String {
    let mut lines = String::new();
    for (case, text) in cases {
        let indented = result(&yaml(text)).replace('\n', "\n    ");
        lines.push_str(&format!("{case}\n    {indented}\n"));
    }
    lines
}

/// A result, or its findings one per line.
fn or_findings(result: Result<String, Vec<String>>) -> String {
    result.unwrap_or_else(|findings| {
        findings.iter().map(|finding| format!("! {finding}")).collect::<Vec<_>>().join("\n")
    })
}

/// A mapping of texts at a path of a document; empty if there is none.
fn texts(object: &Value, name: &str) -> BTreeMap<String, String> {
    let found = object.get("metadata").and_then(|metadata| metadata.get(name));
    found.map(|found| serde_json::from_value(found.clone()).unwrap()).unwrap_or_default()
}

/// The request of a member in one line, without the pod slot that every pod takes.
fn request_line(request: &Request) -> String {
    let amounts = request.amounts.iter().filter(|(name, _)| &***name != "pods");
    let mut parts: Vec<String> = amounts.map(|(name, amount)| format!("{name}={amount}")).collect();
    if let Some(gpu) = &request.gpu {
        parts.push(format!("{}x{}@{}", gpu.resource, gpu.count, gpu.share));
    }
    if parts.is_empty() { "nothing".into() } else { parts.join(" ") }
}

/// The constraints of a member in one line.
fn constraints_line(constraints: &Constraints) -> String {
    let term = |term: &Term| {
        let one = |requirement: &muster_core::constraint::Requirement| {
            let key = &requirement.key;
            match &requirement.test {
                Test::In(values) => format!("{key} in {}", values.join("|")),
                Test::NotIn(values) => format!("{key} not in {}", values.join("|")),
                Test::Exists => format!("{key}"),
                Test::DoesNotExist => format!("no {key}"),
                Test::Gt(bound) => format!("{key}>{bound}"),
                Test::Lt(bound) => format!("{key}<{bound}"),
            }
        };
        term.iter().map(one).collect::<Vec<_>>().join(" & ")
    };
    let mut parts = Vec::new();
    if !constraints.all.is_empty() {
        parts.push(format!("all({})", term(&constraints.all)));
    }
    if !constraints.any.is_empty() {
        let terms: Vec<String> = constraints.any.iter().map(term).collect();
        parts.push(format!("any({})", terms.join(" / ")));
    }
    for wish in &constraints.prefer {
        parts.push(format!("prefer {}({})", wish.weight, term(&wish.term)));
    }
    for toleration in &constraints.tolerations {
        let or_any = |text: &Option<std::sync::Arc<str>>| text.as_deref().unwrap_or("*").to_owned();
        let effect = toleration.effect.map_or("*".into(), |effect| format!("{effect:?}"));
        parts.push(format!(
            "tolerates {}={}:{effect}",
            or_any(&toleration.key),
            or_any(&toleration.value)
        ));
    }
    if parts.is_empty() { "anywhere".into() } else { parts.join(", ") }
}
