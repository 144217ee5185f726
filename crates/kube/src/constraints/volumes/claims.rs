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
use crate::constraints::volumes::volume::Shape;
use crate::objects::pod::Pod;

/// Where a claim that waits for its first pod is to be made.
pub(crate) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// On claims that have their volume for good.
const BOUND: &str = "pv.kubernetes.io/bind-completed";
/// Where claims named their class before there was a field for it.
pub(crate) const OLD_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
/// The provisioner of classes whose volumes are made by hand.
const BY_HAND: &str = "kubernetes.io/no-provisioner";
/// Labels of volumes that say where they are, and what nodes call the same.
pub(crate) const PLACES: [(&str, &str); 4] = [
    ("topology.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("topology.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
];
/// Between several values of such a label.
pub(crate) const SEVERAL: &str = "__";

/// Claims, volumes and classes, as they were last seen.
pub(crate) trait Store {
    fn claim(&self, namespace: &str, name: &str) -> Option<&DynamicObject>;
    fn volume(&self, name: &str) -> Option<&DynamicObject>;
    fn class(&self, name: &str) -> Option<&DynamicObject>;
    /// The names of nodes by what their label calls them.
    fn nodes_called(&self, hostname: &str) -> Vec<Arc<str>>;
    /// A pod of another gang that is somewhere and uses a claim.
    fn user(&self, namespace: &str, claim: &str) -> Option<String>;
    /// The volume that is kept for a claim which does not have it yet.
    fn kept_for(&self, claim: &DynamicObject) -> Option<&str>;
    /// Volumes that could be had.
    fn market(&self) -> StaticVolumes<'_>;
    /// Whether nodes attach only so many volumes of a driver.
    fn is_limited(&self, driver: &str) -> bool;
}

/// What becomes of a claim.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Claim<'a> {
    /// It has this volume.
    Has(&'a str),
    /// This volume is kept for it, and it will have it in a moment.
    Keeps(&'a str),
    /// It is made where its first pod goes.
    WaitsForPod(&'a DynamicObject),
    /// Somebody else gives it a volume.
    WaitsForVolume,
}

/// Where a claim stands.
pub(crate) fn stands<'a>(claim: &'a DynamicObject, store: &'a impl Store) -> Claim<'a> {
    let volume = text(&claim.data, "/spec/volumeName");
    if let Some(volume) = volume {
        return match annotation(claim, BOUND) {
            Some(_) => Claim::Has(volume),
            None => Claim::WaitsForVolume,
        };
    }
    let class = class_of(claim, store);
    let waits = |class: &&DynamicObject| {
        text(&class.data, "/volumeBindingMode") == Some("WaitForFirstConsumer")
    };
    match class.filter(waits) {
        None => Claim::WaitsForVolume,
        Some(class) => store.kept_for(claim).map_or(Claim::WaitsForPod(class), Claim::Keeps),
    }
}

/// The class of a claim.
pub(crate) fn class_of<'a>(
    claim: &DynamicObject,
    store: &'a impl Store,
) -> Option<&'a DynamicObject> {
    let class = text(&claim.data, "/spec/storageClassName").or(annotation(claim, OLD_CLASS));
    class.and_then(|class| store.class(class))
}

/// Whether volumes of a class are made by hand.
pub(crate) fn is_by_hand(class: &DynamicObject) -> bool {
    text(&class.data, "/provisioner") == Some(BY_HAND)
}

/// Ties a pod to where its volumes are or may be made.
pub(crate) fn volumes(pod: &Pod, others: &[&Pod], store: &impl Store, tied: &mut PodConstraints) {
    let here = namespace(pod);
    for name in claims(pod) {
        let Some(claim) = store.claim(here, &name) else {
            tied.wait(format!("volume claim {name} does not exist"));
            continue;
        };
        if claim.metadata.deletion_timestamp.is_some() {
            tied.wait(format!("volume claim {name} is being deleted"));
        }
        if is_for_one(claim) {
            let other = others.iter().find(|other| claims(other).contains(&name));
            let other = other.and_then(|other| other.metadata.name.clone());
            if let Some(other) = other.or_else(|| store.user(here, &name)) {
                tied.wait(format!("volume claim {name} is for one pod only, and {other} uses it"));
            }
        }
        match stands(claim, store) {
            Claim::Has(volume) | Claim::Keeps(volume) => match store.volume(volume) {
                Some(volume) => is_there(volume, store, tied),
                None => tied.wait(format!("volume {volume} of claim {name} does not exist")),
            },
            Claim::WaitsForPod(class) => may_be_made(&name, claim, class, store, tied),
            Claim::WaitsForVolume if text(&claim.data, "/status/phase") == Some("Lost") => {
                tied.wait(format!("volume claim {name} has lost its volume"));
            }
            Claim::WaitsForVolume => tied.wait(format!("volume claim {name} is not bound yet")),
        }
    }
}

/// The claims a pod uses.
pub(crate) fn claims(pod: &Pod) -> Vec<String> {
    pod.spec.claims(pod.metadata.name.as_deref().unwrap_or_default())
}

fn is_for_one(claim: &DynamicObject) -> bool {
    let modes = claim.data.pointer("/spec/accessModes").and_then(Value::as_array);
    modes.is_some_and(|modes| modes.iter().any(|mode| mode == "ReadWriteOncePod"))
}

/// Only nodes that reach a volume will do.
pub(crate) fn is_there(volume: &DynamicObject, store: &impl Store, tied: &mut PodConstraints) {
    let name = volume.metadata.name.as_deref().unwrap_or_default();
    if let Some(nodes) = volume.data.pointer("/spec/nodeAffinity/required") {
        match terms(nodes) {
            Ok(terms) => tied.one_of(terms.iter().map(|term| by_name(term, store)).collect()),
            Err(why) => tied.wait(format!("volume {name}: {why}")),
        }
    }
    let labels = volume.metadata.labels.iter().flatten();
    for (label, values) in labels {
        if let Some((_, key)) = PLACES.iter().find(|(known, _)| known == label) {
            tied.only(key, values.split(SEVERAL).map(Arc::from).collect());
        }
    }
}

/// Only nodes where a class may make volumes will do; and only the one where it was told to, if it was.
fn may_be_made(
    name: &str,
    claim: &DynamicObject,
    class: &DynamicObject,
    store: &impl Store,
    tied: &mut PodConstraints,
) {
    if is_by_hand(class) {
        let space = claim.metadata.namespace.as_deref().unwrap_or("default");
        match Shape::of(claim) {
            Some(shape) => drop(tied.wants.insert(format!("{space}/{name}"), shape)),
            None => tied.wait(format!("volume claim {name} cannot be understood")),
        }
        return;
    }
    let allowed = class.data.get("allowedTopologies").and_then(Value::as_array);
    let allowed: Vec<Term> = allowed.into_iter().flatten().map(allowed_term).collect();
    if !allowed.is_empty() {
        tied.one_of(allowed.iter().map(|term| by_name(term, store)).collect());
    }
    if let Some(node) = annotation(claim, SELECTED_NODE) {
        tied.only(HOSTNAME, BTreeSet::from([node.into()]));
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
fn by_name(term: &Term, store: &impl Store) -> Term {
    let names = |values: &[Arc<str>]| {
        let named = |value: &Arc<str>| {
            let names = store.nodes_called(value);
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

    use crate::constraints::cluster_view::play;
    use crate::constraints::volumes::claims::*;
    use crate::constraints::volumes::lister::play::Shop;

    fn object(name: &str, mut object: Value) -> (String, DynamicObject) {
        object["metadata"]["name"] = json!(name);
        (name.to_owned(), serde_json::from_value(object).expect("an object"))
    }

    fn shop() -> Shop {
        let done = json!({"annotations": {BOUND: "yes"}});
        let zones = |zones: &[&str]| json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": zones}]}]}});
        let host = json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": ["host-a"]}]}]}});
        Shop {
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
                object("hand", json!({"provisioner": BY_HAND, "volumeBindingMode": "WaitForFirstConsumer"})),
            ]
            .into(),
            kept: [("kept".to_owned(), "on-a".to_owned())].into(),
            ..Shop::default()
        }
    }

    fn pod(claim: &str) -> Pod {
        play::pod(
            "db",
            &json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]}),
        )
    }

    fn outcome(claim: &str, others: &[&Pod], shop: &Shop) -> String {
        let mut tied = PodConstraints::default();
        volumes(&pod(claim), others, shop, &mut tied);
        if let Some(why) = &tied.waits {
            return format!("waits: {why}");
        }
        let mut constraints = Constraints::default();
        tied.constrain(&mut constraints);
        let all = constraints.any.iter().flatten().chain(&constraints.all);
        let all: Vec<String> = all.map(|one| format!("{} {:?}", one.key, one.test)).collect();
        all.join("; ").replace('"', "")
    }

    #[test]
    fn claims_tie_pods_to_where_their_volumes_are() {
        let shop = shop();
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
            assert_eq!(outcome(claim, &[], &shop), expected, "{claim}");
        }
        let mut tied = PodConstraints::default();
        volumes(&pod("hand"), &[], &shop, &mut tied);
        assert_eq!(tied.wants.keys().collect::<Vec<_>>(), ["default/hand"]);
    }

    #[test]
    fn a_claim_for_one_pod_is_used_by_one() {
        let mut shop = shop();
        let mut other = pod("one");
        other.metadata.name = Some("sibling".to_owned());
        assert!(outcome("one", &[&other], &shop).contains("sibling uses it"));
        shop.used = true;
        assert!(outcome("one", &[], &shop).contains("other uses it"));
        assert_eq!(outcome("has", &[&pod("has")], &shop), "zone In([1, 2])");
    }
}
