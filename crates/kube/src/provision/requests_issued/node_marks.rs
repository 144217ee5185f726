//! Whose a node is: what is written on nodes that an autoscaler made.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_core::id::ClaimId;
use muster_core::pool::OfferingSpec;
use serde_json::{Map, Value, json};

use crate::objects::node::Node;
use crate::provision::karpenter::{CLAIM, IDLE_SINCE, Marks, OFFERING, POOL, offering_name};

/// What keeps an autoscaler from taking a node away.
const HELD: &str = "cluster-autoscaler.kubernetes.io/scale-down-disabled";
/// What tells that a node was let go.
pub(crate) const LET_GO: &str = "muster.sh/released";

/// Whether a node looks like those of an offering.
pub(crate) fn is_of(node: &Node, offering: &OfferingSpec) -> bool {
    let none = BTreeMap::new();
    let labels = node.metadata.labels.as_ref().unwrap_or(&none);
    let has = |(key, value): (&Arc<str>, &Arc<str>)| {
        labels.get(&**key).is_some_and(|has| **has == **value)
    };
    offering.shown_labels().iter().all(has)
}

/// The claim that a node was taken for, if it was.
pub(crate) fn marks(node: &Node) -> Option<Marks> {
    let annotations = node.metadata.annotations.as_ref()?;
    Some(Marks {
        id: ClaimId(annotations.get(CLAIM)?.parse().ok()?),
        pool: annotations.get(POOL)?.as_str().into(),
        offering: annotations.get(OFFERING)?.as_str().into(),
    })
}

/// A patch by which a node is taken for a claim, and kept from being taken away. It gets the labels that only Muster
/// gives.
pub(crate) fn taking(id: ClaimId, pool: &str, offering: &OfferingSpec) -> Value {
    let shown = offering.shown_labels();
    let own = offering.labels.iter().filter(|(key, _)| !shown.contains_key(*key));
    let labels: Map<String, Value> =
        own.map(|(key, value)| (key.to_string(), json!(value))).collect();
    let annotations = json!({
        CLAIM: id.0.to_string(),
        POOL: pool,
        OFFERING: offering_name(offering),
        HELD: "true",
    });
    json!({"metadata": {"labels": labels, "annotations": annotations}})
}

/// A patch by which a node is nobody's again, and stays so.
pub(crate) fn letting_go() -> Value {
    let marks = json!({
        CLAIM: null, POOL: null, OFFERING: null, IDLE_SINCE: null, HELD: null, LET_GO: "true",
    });
    json!({"metadata": {"annotations": marks}})
}

/// Whether a node was never taken, by any means.
pub(crate) fn is_new(node: &Node) -> bool {
    let was = |marks: &Option<BTreeMap<String, String>>, key: &str| {
        marks.as_ref().is_some_and(|marks| marks.contains_key(key))
    };
    !was(&node.metadata.annotations, LET_GO) && !was(&node.metadata.labels, CLAIM)
}
