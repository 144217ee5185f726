//! Quoted `kubectl` commands: verbs, and the kinds that they name.

use muster_api::crd;

const VERBS: [&str; 19] = [
    "annotate",
    "apply",
    "auth",
    "cordon",
    "create",
    "delete",
    "describe",
    "events",
    "get",
    "label",
    "logs",
    "patch",
    "port-forward",
    "rollout",
    "scale",
    "taint",
    "uncordon",
    "version",
    "wait",
];

/// Verbs whose first argument is a kind.
const OF_KINDS: [&str; 9] =
    ["annotate", "delete", "describe", "get", "label", "patch", "scale", "taint", "wait"];

/// Kinds of others that pages name.
const KINDS: [&str; 26] = [
    "configmaps",
    "crd",
    "customresourcedefinitions",
    "deployments",
    "deployment",
    "events",
    "jobs",
    "job",
    "leases",
    "lease",
    "namespaces",
    "namespace",
    "nodes",
    "node",
    "nodeclaims",
    "nodepools",
    "pod",
    "pods",
    "podgroups.scheduling.volcano.sh",
    "provisioningrequests",
    "podtemplates",
    "pytorchjobs",
    "pytorchjob",
    "queues.scheduling.volcano.sh",
    "queues.scheduling.run.ai",
    "clusterqueues",
];

pub(super) fn check(args: &[String]) -> Result<(), String> {
    let mut words = args.iter().map(String::as_str);
    let mut plain = Vec::new();
    while let Some(word) = words.next() {
        match word {
            // Options that take the next word.
            "-n" | "-o" | "-l" | "-f" | "-p" | "-c" | "--namespace" | "--type" | "--context"
            | "--field-selector" | "--for" | "--selector" | "--timeout" | "--kubeconfig" => {
                words.next();
            }
            word if word.starts_with('-') => {}
            word => plain.push(word),
        }
    }
    let verb = plain.first().copied().unwrap_or_default();
    if !VERBS.contains(&verb) {
        return Err(format!("kubectl has no {verb}"));
    }
    if !OF_KINDS.contains(&verb) || plain.len() < 2 {
        return Ok(());
    }
    for kind in plain[1].split(',') {
        let kind = kind.split('/').next().unwrap_or_default();
        if !is_ours(kind) && !KINDS.contains(&kind) {
            return Err(format!("no kind {kind} is known here"));
        }
    }
    Ok(())
}

/// Whether an API server with Muster's definitions knows a kind by this name.
fn is_ours(name: &str) -> bool {
    crd::definitions().iter().any(|definition| {
        let names = &definition.object["spec"]["names"];
        let is_short =
            names["shortNames"].as_array().into_iter().flatten().any(|short| short == name);
        let is_category =
            names["categories"].as_array().into_iter().flatten().any(|one| one == name);
        let full = format!("{}.{}", definition.plural, crd::GROUP);
        is_short
            || is_category
            || name == definition.plural
            || name == full
            || names["singular"] == name
    })
}
