//! PersistentVolumeClaims (PVCs) as node requirements: a bound claim restricts its pods to nodes that reach its volume;
//! an unbound claim with `WaitForFirstConsumer` is provisioned where its pod goes; for any other claim the pod waits.
//!
//! Deliberately not here: which claims get static volumes (`static_volumes`), and how many volumes a node can attach
//! (`attach_limits`).

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::api::DynamicObject;
use muster_api::pod::{Affinity, NodeAffinity, NodeSelector, PodSpec};
use muster_core::constraint::{Requirement, Term, Test};
use muster_core::topology::HOSTNAME;
use serde_json::Value;

use crate::constraints::cluster_view::namespace;
use crate::constraints::pod_constraints::PodConstraints;
use crate::constraints::volumes::lister::VolumeLister;
use crate::constraints::volumes::volume::ClaimRequirements;
use crate::objects::pod::Pod;

/// On claims with `WaitForFirstConsumer`: the node for which the volume is to be provisioned.
pub(crate) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// On claims whose binding to their volume is complete.
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// The storage class of a claim, before there was a field for it.
pub(crate) const BETA_STORAGE_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
/// The provisioner of storage classes with static volumes only.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";
/// Topology labels of volumes, and the node label that each corresponds to.
pub(crate) const TOPOLOGY_LABELS: [(&str, &str); 4] = [
    ("topology.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("topology.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
];
/// Between several values of such a label.
pub(crate) const VALUE_SEPARATOR: &str = "__";

/// The binding state of a claim.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ClaimState<'a> {
    /// It is bound to this volume.
    Bound(&'a str),
    /// The claim ref of this volume names it; the PersistentVolume controller completes the binding.
    Prebound(&'a str),
    /// It is unbound, and provisioned or bound where its first pod goes; with its storage class.
    WaitForFirstConsumer(&'a DynamicObject),
    /// It is unbound, and is bound without regard to its pods.
    Pending,
}

/// The binding state of a claim.
pub(crate) fn claim_state<'a>(
    claim: &'a DynamicObject,
    lister: &'a impl VolumeLister,
) -> ClaimState<'a> {
    let volume = text(&claim.data, "/spec/volumeName");
    if let Some(volume) = volume {
        return match annotation(claim, BIND_COMPLETED) {
            Some(_) => ClaimState::Bound(volume),
            None => ClaimState::Pending,
        };
    }
    let class = class_of(claim, lister);
    let waits = |class: &&DynamicObject| {
        text(&class.data, "/volumeBindingMode") == Some("WaitForFirstConsumer")
    };
    match class.filter(waits) {
        None => ClaimState::Pending,
        Some(class) => lister
            .kept_for(claim)
            .map_or(ClaimState::WaitForFirstConsumer(class), ClaimState::Prebound),
    }
}

/// The storage class of a claim.
pub(crate) fn class_of<'a>(
    claim: &DynamicObject,
    lister: &'a impl VolumeLister,
) -> Option<&'a DynamicObject> {
    let class =
        text(&claim.data, "/spec/storageClassName").or(annotation(claim, BETA_STORAGE_CLASS));
    class.and_then(|class| lister.class(class))
}

/// Whether a storage class has static volumes only (`no-provisioner`).
pub(crate) fn is_static(class: &DynamicObject) -> bool {
    text(&class.data, "/provisioner") == Some(NO_PROVISIONER)
}

/// Restricts a pod to nodes that reach its volumes, or where they may be provisioned; or has it wait.
pub(crate) fn require_volumes(
    pod: &Pod,
    others: &[&Pod],
    lister: &impl VolumeLister,
    resolved: &mut PodConstraints,
) {
    let here = namespace(pod);
    for name in claims(pod) {
        let Some(claim) = lister.claim(here, &name) else {
            resolved.wait_because(format!("volume claim {name} does not exist"));
            continue;
        };
        if claim.metadata.deletion_timestamp.is_some() {
            resolved.wait_because(format!("volume claim {name} is being deleted"));
        }
        if is_read_write_once_pod(claim) {
            let other = others.iter().find(|other| claims(other).contains(&name));
            let other = other.and_then(|other| other.metadata.name.clone());
            if let Some(other) = other.or_else(|| lister.user(here, &name)) {
                resolved.wait_because(format!(
                    "volume claim {name} is ReadWriteOncePod, and {other} uses it"
                ));
            }
        }
        match claim_state(claim, lister) {
            ClaimState::Bound(volume) | ClaimState::Prebound(volume) => {
                match lister.volume(volume) {
                    Some(volume) => require_reachable(volume, lister, resolved),
                    None => resolved
                        .wait_because(format!("volume {volume} of claim {name} does not exist")),
                }
            }
            ClaimState::WaitForFirstConsumer(class) => {
                require_provisionable(&name, claim, class, lister, resolved);
            }
            ClaimState::Pending if text(&claim.data, "/status/phase") == Some("Lost") => {
                resolved.wait_because(format!("volume claim {name} has lost its volume"));
            }
            ClaimState::Pending => {
                resolved.wait_because(format!("volume claim {name} is not bound yet"));
            }
        }
    }
}

/// The PersistentVolumeClaims a pod uses, by name.
pub(crate) fn claims(pod: &Pod) -> Vec<String> {
    pod.spec.claims(pod.metadata.name.as_deref().unwrap_or_default())
}

fn is_read_write_once_pod(claim: &DynamicObject) -> bool {
    let modes = claim.data.pointer("/spec/accessModes").and_then(Value::as_array);
    modes.is_some_and(|modes| modes.iter().any(|mode| mode == "ReadWriteOncePod"))
}

/// Requires a node that reaches a volume.
pub(crate) fn require_reachable(
    volume: &DynamicObject,
    lister: &impl VolumeLister,
    resolved: &mut PodConstraints,
) {
    let name = volume.metadata.name.as_deref().unwrap_or_default();
    if let Some(nodes) = volume.data.pointer("/spec/nodeAffinity/required") {
        match terms(nodes) {
            Ok(terms) => resolved
                .require_any(terms.iter().map(|term| with_node_names(term, lister)).collect()),
            Err(why) => resolved.wait_because(format!("volume {name}: {why}")),
        }
    }
    let labels = volume.metadata.labels.iter().flatten();
    for (label, values) in labels {
        if let Some((_, key)) = TOPOLOGY_LABELS.iter().find(|(known, _)| known == label) {
            resolved.require_in(key, values.split(VALUE_SEPARATOR).map(Arc::from).collect());
        }
    }
}

/// Requires a node where the storage class may provision volumes, and the selected node if the claim has one. A claim
/// of a static class is recorded for `static_volumes`.
fn require_provisionable(
    name: &str,
    claim: &DynamicObject,
    class: &DynamicObject,
    lister: &impl VolumeLister,
    resolved: &mut PodConstraints,
) {
    if is_static(class) {
        let namespace = claim.metadata.namespace.as_deref().unwrap_or("default");
        match ClaimRequirements::of(claim) {
            Some(requirements) => {
                drop(resolved.static_claims.insert(format!("{namespace}/{name}"), requirements));
            }
            None => resolved.wait_because(format!("volume claim {name} is invalid")),
        }
        return;
    }
    let allowed = class.data.get("allowedTopologies").and_then(Value::as_array);
    let allowed: Vec<Term> = allowed.into_iter().flatten().map(allowed_term).collect();
    if !allowed.is_empty() {
        resolved.require_any(allowed.iter().map(|term| with_node_names(term, lister)).collect());
    }
    if let Some(node) = annotation(claim, SELECTED_NODE) {
        resolved.require_in(HOSTNAME, BTreeSet::from([node.into()]));
    }
}

/// Terms of a node selector, read as those of a pod's node affinity.
pub(crate) fn terms(selector: &Value) -> Result<Vec<Term>, String> {
    let required: NodeSelector =
        serde_json::from_value(selector.clone()).map_err(|why| why.to_string())?;
    let nodes = NodeAffinity { required: Some(required), ..NodeAffinity::default() };
    let affinity = Affinity { node_affinity: Some(nodes), ..Affinity::default() };
    let spec = PodSpec { affinity: Some(affinity), ..PodSpec::default() };
    spec.constraints().map(|constraints| constraints.any).map_err(|why| why.join("; "))
}

fn allowed_term(term: &Value) -> Term {
    let expressions = term.get("matchLabelExpressions").and_then(Value::as_array);
    let one = |expression: &Value| {
        let values = expression.get("values").and_then(Value::as_array);
        let values = values.into_iter().flatten().filter_map(Value::as_str).map(Arc::from);
        let key = text(expression, "/key").unwrap_or_default().into();
        Requirement { key, test: Test::In(values.collect()) }
    };
    expressions.into_iter().flatten().map(one).collect()
}

/// Replaces hostname labels by node names: the planner identifies nodes by name, volumes by the hostname label, which
/// may differ.
fn with_node_names(term: &Term, lister: &impl VolumeLister) -> Term {
    let names = |values: &[Arc<str>]| {
        let named = |value: &Arc<str>| {
            let names = lister.nodes_with_hostname(value);
            if names.is_empty() { vec![value.clone()] } else { names }
        };
        values.iter().flat_map(named).collect()
    };
    let one = |one: &Requirement| {
        let test = match &one.test {
            Test::In(values) if &*one.key == HOSTNAME => Test::In(names(values)),
            Test::NotIn(values) if &*one.key == HOSTNAME => Test::NotIn(names(values)),
            other => other.clone(),
        };
        Requirement { key: one.key.clone(), test }
    };
    term.iter().map(one).collect()
}

pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer)?.as_str().filter(|text| !text.is_empty())
}

pub(crate) fn annotation<'a>(object: &'a DynamicObject, name: &str) -> Option<&'a str> {
    object.metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use muster_core::constraint::Constraints;
    use serde_json::json;

    use crate::constraints::cluster_view::fixtures;
    use crate::constraints::volumes::claims::*;
    use crate::constraints::volumes::lister::fixtures::FakeVolumes;

    fn object(name: &str, mut object: Value) -> (String, DynamicObject) {
        object["metadata"]["name"] = json!(name);
        (name.to_owned(), serde_json::from_value(object).expect("an object"))
    }

    fn lister() -> FakeVolumes {
        let done = json!({"annotations": {BIND_COMPLETED: "yes"}});
        let zones = |zones: &[&str]| json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": zones}]}]}});
        let host = json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": ["host-a"]}]}]}});
        FakeVolumes {
            claims: [
                object("has", json!({"metadata": done, "spec": {"volumeName": "in-zone"}})),
                object("local", json!({"metadata": done, "spec": {"volumeName": "on-a"}})),
                object("old", json!({"metadata": done, "spec": {"volumeName": "labelled"}})),
                object("half", json!({"spec": {"volumeName": "in-zone"}})),
                object("gone", json!({"metadata": done, "spec": {"volumeName": "nowhere"}})),
                object("slow", json!({"spec": {"storageClassName": "now"}})),
                object("lost", json!({"spec": {}, "status": {"phase": "Lost"}})),
                object("late", json!({"spec": {"storageClassName": "late"}})),
                object("told", json!({"metadata": {"annotations": {SELECTED_NODE: "b"}}, "spec": {"storageClassName": "late"}})),
                object("hand", json!({"spec": {"storageClassName": "hand", "resources": {"requests": {"storage": "1Gi"}}}})),
                object("odd", json!({"spec": {"storageClassName": "hand"}})),
                object("kept", json!({"spec": {"storageClassName": "hand"}})),
                object("one", json!({"spec": {"storageClassName": "any", "accessModes": ["ReadWriteOncePod"]}})),
            ]
            .into(),
            volumes: [
                object("in-zone", json!({"spec": {"nodeAffinity": zones(&["1", "2"])}})),
                object("on-a", json!({"spec": {"nodeAffinity": host}})),
                object("labelled", json!({"metadata": {"labels": {"failure-domain.beta.kubernetes.io/zone": "1__2"}}})),
            ]
            .into(),
            classes: [
                object("now", json!({"provisioner": "x"})),
                object("any", json!({"provisioner": "x", "volumeBindingMode": "WaitForFirstConsumer"})),
                object("late", json!({"provisioner": "x", "volumeBindingMode": "WaitForFirstConsumer", "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["3"]}]}]})),
                object("hand", json!({"provisioner": NO_PROVISIONER, "volumeBindingMode": "WaitForFirstConsumer"})),
            ]
            .into(),
            kept: [("kept".to_owned(), "on-a".to_owned())].into(),
            ..FakeVolumes::default()
        }
    }

    fn pod(claim: &str) -> Pod {
        fixtures::pod(
            "db",
            &json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]}),
        )
    }

    fn outcome(claim: &str, others: &[&Pod], lister: &FakeVolumes) -> String {
        let mut resolved = PodConstraints::default();
        require_volumes(&pod(claim), others, lister, &mut resolved);
        if let Some(why) = &resolved.wait_reason {
            return format!("waits: {why}");
        }
        let mut constraints = Constraints::default();
        resolved.apply_to(&mut constraints);
        let all = constraints.any.iter().flatten().chain(&constraints.all);
        let all: Vec<String> = all.map(|one| format!("{} {:?}", one.key, one.test)).collect();
        all.join("; ").replace('"', "")
    }

    #[test]
    fn claims_restrict_pods_to_nodes_that_reach_their_volumes() {
        let lister = lister();
        for (claim, expected) in [
            ("has", "zone In([1, 2])"),
            ("local", "kubernetes.io/hostname In([a])"),
            ("old", "topology.kubernetes.io/zone In([1, 2])"),
            ("half", "waits: volume claim half is not bound yet"),
            ("gone", "waits: volume nowhere of claim gone does not exist"),
            ("slow", "waits: volume claim slow is not bound yet"),
            ("lost", "waits: volume claim lost has lost its volume"),
            ("late", "zone In([3])"),
            ("told", "zone In([3]); kubernetes.io/hostname In([b])"),
            ("none", "waits: volume claim none does not exist"),
            ("one", ""),
            ("hand", ""),
            ("kept", "kubernetes.io/hostname In([a])"),
            ("odd", "waits: volume claim odd is invalid"),
        ] {
            assert_eq!(outcome(claim, &[], &lister), expected, "{claim}");
        }
        let mut resolved = PodConstraints::default();
        require_volumes(&pod("hand"), &[], &lister, &mut resolved);
        assert_eq!(resolved.static_claims.keys().collect::<Vec<_>>(), ["default/hand"]);
    }

    #[test]
    fn a_read_write_once_pod_claim_is_used_by_one_pod() {
        let mut lister = lister();
        let mut other = pod("one");
        other.metadata.name = Some("sibling".to_owned());
        assert!(outcome("one", &[&other], &lister).contains("sibling uses it"));
        lister.used = true;
        assert!(outcome("one", &[], &lister).contains("other uses it"));
        assert_eq!(outcome("has", &[&pod("has")], &lister), "zone In([1, 2])");
    }
}
