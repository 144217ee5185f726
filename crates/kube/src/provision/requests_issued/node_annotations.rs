//! The annotations that assign a node made by an autoscaler to a claim.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_core::id::ClaimId;
use muster_core::pool::OfferingSpec;
use serde_json::{Map, Value, json};

use crate::objects::node::Node;
use crate::provision::karpenter::{
    CLAIM, ClaimIdentity, IDLE_SINCE, OFFERING, POOL, offering_name,
};

/// Keeps Cluster Autoscaler from scaling a node down.
const SCALE_DOWN_DISABLED: &str = "cluster-autoscaler.kubernetes.io/scale-down-disabled";
/// Says that a node was released, so that it is not assigned again.
pub(crate) const RELEASED: &str = "muster.sh/released";

/// Whether a node has the labels of an offering.
pub(crate) fn matches_offering(node: &Node, offering: &OfferingSpec) -> bool {
    let none = BTreeMap::new();
    let labels = node.metadata.labels.as_ref().unwrap_or(&none);
    let has = |(key, value): (&Arc<str>, &Arc<str>)| {
        labels.get(&**key).is_some_and(|has| **has == **value)
    };
    offering.shown_labels().iter().all(has)
}

/// The claim that a node is assigned to.
pub(crate) fn assigned_claim_identity(node: &Node) -> Option<ClaimIdentity> {
    let annotations = node.metadata.annotations.as_ref()?;
    Some(ClaimIdentity {
        id: ClaimId(annotations.get(CLAIM)?.parse().ok()?),
        pool: annotations.get(POOL)?.as_str().into(),
        offering: annotations.get(OFFERING)?.as_str().into(),
    })
}

/// The patch that assigns a node to a claim and protects it from scale-down. It adds the labels that only Muster gives.
pub(crate) fn assign_patch(id: ClaimId, pool: &str, offering: &OfferingSpec) -> Value {
    let shown = offering.shown_labels();
    let own = offering.labels.iter().filter(|(key, _)| !shown.contains_key(*key));
    let labels: Map<String, Value> =
        own.map(|(key, value)| (key.to_string(), json!(value))).collect();
    let annotations = json!({
        CLAIM: id.0.to_string(),
        POOL: pool,
        OFFERING: offering_name(offering),
        SCALE_DOWN_DISABLED: "true",
    });
    json!({"metadata": {"labels": labels, "annotations": annotations}})
}

/// The patch that releases a node for good.
pub(crate) fn release_patch() -> Value {
    let annotations = json!({
        CLAIM: null, POOL: null, OFFERING: null, IDLE_SINCE: null, SCALE_DOWN_DISABLED: null, RELEASED: "true",
    });
    json!({"metadata": {"annotations": annotations}})
}

/// Whether a node was never assigned to a claim, by an autoscaler's request or by Karpenter.
pub(crate) fn was_never_assigned(node: &Node) -> bool {
    let was = |all: &Option<BTreeMap<String, String>>, key: &str| {
        all.as_ref().is_some_and(|all| all.contains_key(key))
    };
    !was(&node.metadata.annotations, RELEASED) && !was(&node.metadata.labels, CLAIM)
}
