//! Volumes: a claim that has one ties its pods to where that is; one that waits for its first pod is made where the pod
//! goes; any other is waited for.
//!
//! Deliberately not here: which claims are given volumes that somebody made by hand (`by_hand`), and how many volumes a
//! node can attach (`attach`).

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::api::DynamicObject;
use muster_api::pod::{Affinity, NodeAffinity, NodeSelector, PodSpec};
use muster_core::constraint::{Requirement, Term, Test};
use muster_core::topology::HOSTNAME;
use serde_json::Value;

use crate::constraints::cluster_view::namespace;
use crate::constraints::pod_constraints::PodConstraints;
use crate::constraints::volumes::static_volumes::StaticVolumes;
use crate::constraints::volumes::volume::ClaimRequirements;
use crate::objects::pod::Pod;

/// Where a claim that waits for its first pod is to be made.
pub(crate) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// On claims that have their volume for good.
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// Where claims named their class before there was a field for it.
pub(crate) const BETA_STORAGE_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
/// The provisioner of classes whose volumes are made by hand.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";
/// Labels of volumes that say where they are, and what nodes call the same.
pub(crate) const TOPOLOGY_LABELS: [(&str, &str); 4] = [
    ("topology.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("topology.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
];
/// Between several values of such a label.
pub(crate) const VALUE_SEPARATOR: &str = "__";

/// Claims, volumes and classes, as they were last seen.
pub(crate) trait VolumeLister {
    fn claim(&self, namespace: &str, name: &str) -> Option<&DynamicObject>;
    fn volume(&self, name: &str) -> Option<&DynamicObject>;
    fn class(&self, name: &str) -> Option<&DynamicObject>;
    /// The names of nodes by what their label calls them.
    fn nodes_with_hostname(&self, hostname: &str) -> Vec<Arc<str>>;
    /// A pod of another gang that is somewhere and uses a claim.
    fn user(&self, namespace: &str, claim: &str) -> Option<String>;
    /// The volume that is kept for a claim which does not have it yet.
    fn kept_for(&self, claim: &DynamicObject) -> Option<&str>;
    /// Volumes that could be had.
    fn static_volumes(&self) -> StaticVolumes<'_>;
    /// Whether nodes attach only so many volumes of a driver.
    fn has_attach_limit(&self, driver: &str) -> bool;
}

/// What becomes of a claim.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ClaimState<'a> {
    /// It has this volume.
    Bound(&'a str),
    /// This volume is kept for it, and it will have it in a moment.
    Prebound(&'a str),
    /// It is made where its first pod goes.
    WaitForFirstConsumer(&'a DynamicObject),
    /// Somebody else gives it a volume.
    Pending,
}

/// Where a claim stands.
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

/// The class of a claim.
pub(crate) fn class_of<'a>(
    claim: &DynamicObject,
    lister: &'a impl VolumeLister,
) -> Option<&'a DynamicObject> {
    let class =
        text(&claim.data, "/spec/storageClassName").or(annotation(claim, BETA_STORAGE_CLASS));
    class.and_then(|class| lister.class(class))
}

/// Whether volumes of a class are made by hand.
pub(crate) fn is_static(class: &DynamicObject) -> bool {
    text(&class.data, "/provisioner") == Some(NO_PROVISIONER)
}

/// Ties a pod to where its volumes are or may be made.
pub(crate) fn require_volumes(
    &pod: &Pod,
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
                    "volume claim {name} is for one pod only, and {other} uses it"
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
                require_provisionable(&name, claim, class, lister, resolved)
            }
            ClaimState::Pending if text(&claim.data, "/status/phase") == Some("Lost") => {
                resolved.wait_because(format!("volume claim {name} has lost its volume"));
            }
            ClaimState::Pending => {
                resolved.wait_because(format!("volume claim {name} is not bound yet"))
            }
        }
    }
}

/// The claims a pod uses.
pub(crate) fn claims(pod: &Pod) -> Vec<String> {
    pod.spec.claims(pod.metadata.name.as_deref().unwrap_or_default())
}

fn is_read_write_once_pod(claim: &DynamicObject) -> bool {
    let modes = claim.data.pointer("/spec/accessModes").and_then(Value::as_array);
    modes.is_some_and(|modes| modes.iter().any(|mode| mode == "ReadWriteOncePod"))
}

/// Only nodes that reach a volume will do.
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

/// Only nodes where a class may make volumes will do; and only the one where it was told to, if it was.
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
                drop(resolved.static_claims.insert(format!("{namespace}/{name}"), requirements))
            }
            None => resolved.wait_because(format!("volume claim {name} cannot be understood")),
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

/// Terms of a node selector, read as a pod's own would be.
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

/// The planner knows nodes by their names, and volumes by what a label says, which may be another.
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
    fn claims_tie_pods_to_where_their_volumes_are() {
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
            ("odd", "waits: volume claim odd cannot be understood"),
        ] {
            assert_eq!(outcome(claim, &[], &lister), expected, "{claim}");
        }
        let mut resolved = PodConstraints::default();
        require_volumes(&pod("hand"), &[], &lister, &mut resolved);
        assert_eq!(resolved.static_claims.keys().collect::<Vec<_>>(), ["default/hand"]);
    }

    #[test]
    fn a_claim_for_one_pod_is_used_by_one() {
        let mut lister = lister();
        let mut other = pod("one");
        other.metadata.name = Some("sibling".to_owned());
        assert!(outcome("one", &[&other], &lister).contains("sibling uses it"));
        lister.used = true;
        assert!(outcome("one", &[], &lister).contains("other uses it"));
        assert_eq!(outcome("has", &[&pod("has")], &lister), "zone In([1, 2])");
    }
}
