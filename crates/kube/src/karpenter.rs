//! NodeClaims: how one machine is asked for.
//!
//! They stand alone, without a node pool: Karpenter then neither consolidates nor replaces them, and only launches,
//! registers and deletes. Everything else is Muster's to decide.

use std::sync::Arc;

use muster_api::NodeClassRef;
use muster_core::constraint::{Effect, Taint};
use muster_core::id::ClaimId;
use muster_core::pool::OfferingSpec;
use serde_json::{Value, json};

use crate::objects::NodeClaim;

/// The number of a claim, on NodeClaims and, copied by Karpenter, on their nodes.
pub const CLAIM: &str = "muster.sh/claim";
/// The pool a claim is of.
pub const POOL: &str = "muster.sh/pool";
/// The offering a claim asks for.
pub const OFFERING: &str = "muster.sh/offering";
/// Since when nobody has used the node of a claim, on the node.
pub const IDLE_SINCE: &str = "muster.sh/idle-since";
/// Who made an object.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// And that it was Muster.
pub const MUSTER: &str = "muster";

const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
const ZONE: &str = "topology.kubernetes.io/zone";
const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";

/// What the NodeClaim of a claim is called: the same whenever it is asked for.
pub fn claim_name(id: ClaimId) -> String {
    format!("muster-{}", id.0)
}

/// What an offering is called, so that a claim finds it again when its pool was rewritten.
pub fn offering_name(offering: &OfferingSpec) -> String {
    offering.name()
}

/// The NodeClaim for a claim. It has no owner: were it its pool's, whoever deletes the pool would have the machines taken away
/// under those who use them. Its labels say whose it is.
pub fn node_claim(
    id: ClaimId,
    pool: &str,
    (class, startup): (&NodeClassRef, &[Taint]),
    offering: &OfferingSpec,
) -> Value {
    let mut labels = json!({CLAIM: id.0.to_string(), POOL: pool, MANAGED_BY: MUSTER});
    for (key, value) in &offering.labels {
        labels[&**key] = json!(value);
    }
    let wants = [
        (INSTANCE_TYPE, &offering.instance_type),
        (ZONE, &offering.zone),
        (CAPACITY_TYPE, &offering.capacity_type),
    ];
    let requirements: Vec<Value> = wants
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(key, value)| json!({"key": key, "operator": "In", "values": [value]}))
        .collect();
    let mut requests = json!({});
    if let Some(gpu) = offering.gpu.as_ref().filter(|_| offering.gpus > 0) {
        // It then counts as initialized only when it shows GPUs; how many is for Muster to see.
        requests[&*gpu.resource] = json!(offering.gpus.to_string());
    }
    let spoken = |taints: &[Taint]| -> Vec<Value> {
        let one = |taint: &Taint| json!({"key": taint.key, "value": taint.value, "effect": effect(taint.effect)});
        taints.iter().map(one).collect()
    };
    json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "name": claim_name(id),
            "labels": labels,
            "annotations": {
                OFFERING: offering_name(offering),
                "karpenter.sh/do-not-disrupt": "true",
            },
        },
        "spec": {
            "nodeClassRef": {"group": class.group, "kind": class.kind, "name": class.name},
            "requirements": requirements,
            "resources": {"requests": requests},
            "taints": spoken(&offering.taints),
            "startupTaints": spoken(startup),
            "expireAfter": "Never",
        },
    })
}

pub(crate) fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::NoSchedule => "NoSchedule",
        Effect::PreferNoSchedule => "PreferNoSchedule",
        Effect::NoExecute => "NoExecute",
    }
}

/// What Muster wrote on a NodeClaim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marks {
    pub id: ClaimId,
    pub pool: Arc<str>,
    pub offering: Arc<str>,
}

/// What Muster wrote on a NodeClaim, if it is one of Muster's.
pub fn marks(claim: &NodeClaim) -> Option<Marks> {
    let labels = claim.metadata.labels.as_ref()?;
    let annotations = claim.metadata.annotations.as_ref()?;
    let id = labels.get(CLAIM)?.parse().ok()?;
    Some(Marks {
        id: ClaimId(id),
        pool: labels.get(POOL)?.as_str().into(),
        offering: annotations.get(OFFERING)?.as_str().into(),
    })
}
