//! The NodeClaim that requests one node of an offering.
//!
//! Rule: a NodeClaim names exactly one offering. It requires the offering's instance type, zone and capacity type (never spot,
//! unless the offering says so), and requests its GPUs and its extended resources. Karpenter reports it as initialized only
//! when the node shows some of each; `node_readiness` waits until it shows all.
//!
//! NodeClaims belong to no NodePool: Karpenter then neither consolidates nor replaces them, and only launches, registers and
//! deletes. They never expire, and are annotated against disruption. When to release one is the planner's decision.

use std::sync::Arc;

use muster_api::Karpenter;
use muster_core::constraint::{Effect, Taint};
use muster_core::id::ClaimId;
use muster_core::pool::OfferingSpec;
use muster_core::resource::is_extended;
use serde_json::{Map, Value, json};

use crate::objects::node_claim::NodeClaim;

/// The label with a claim's number, on NodeClaims and, copied by Karpenter, on their nodes.
pub const CLAIM: &str = "muster.sh/claim";
/// The label with a claim's pool.
pub const POOL: &str = "muster.sh/pool";
/// The annotation with the offering that a claim requests.
pub const OFFERING: &str = "muster.sh/offering";
/// The annotation of a node with the time since which it is idle.
pub const IDLE_SINCE: &str = "muster.sh/idle-since";
/// The label with the controller that created an object.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The value of [`MANAGED_BY`] on Muster's objects.
pub const MUSTER: &str = "muster";

const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
const ZONE: &str = "topology.kubernetes.io/zone";
const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";

/// The name of a claim's NodeClaim: the same on every attempt, so that a repeated create fails with `AlreadyExists`.
pub fn node_claim_name(id: ClaimId) -> String {
    format!("muster-{}", id.0)
}

/// The name by which a claim finds its offering again after its Pool has changed.
pub fn offering_name(offering: &OfferingSpec) -> String {
    offering.name()
}

/// The NodeClaim for a claim. It has no owner reference: were it owned by its Pool, deleting the Pool would delete nodes in use.
/// Its labels name the pool and the claim.
pub fn node_claim(
    id: ClaimId,
    pool: &str,
    karpenter: &Karpenter,
    offering: &OfferingSpec,
) -> Value {
    let mut labels = json!({CLAIM: id.0.to_string(), POOL: pool, MANAGED_BY: MUSTER});
    for (key, value) in &offering.labels {
        labels[&**key] = json!(value);
    }
    let required = [
        (INSTANCE_TYPE, &offering.instance_type),
        (ZONE, &offering.zone),
        (CAPACITY_TYPE, &offering.capacity_type),
    ];
    let mut requirements: Vec<Value> = required
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(key, value)| json!({"key": key, "operator": "In", "values": [value]}))
        .collect();
    if offering.capacity_type.is_empty() {
        // Karpenter takes the cheapest: spot nodes are bought only where the offering names them.
        let not_spot = json!({"key": CAPACITY_TYPE, "operator": "NotIn", "values": ["spot"]});
        requirements.push(not_spot);
    }
    let Karpenter { node_class_ref: class, startup_taints, resources_not_requested } = karpenter;
    let taint_values = |taints: &[Taint]| -> Vec<Value> {
        let one = |taint: &Taint| json!({"key": taint.key, "value": taint.value, "effect": effect(taint.effect)});
        taints.iter().map(one).collect()
    };
    json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "name": node_claim_name(id),
            "labels": labels,
            "annotations": {
                OFFERING: offering_name(offering),
                "karpenter.sh/do-not-disrupt": "true",
            },
        },
        "spec": {
            "nodeClassRef": {"group": class.group, "kind": class.kind, "name": class.name},
            "requirements": requirements,
            "resources": {"requests": requests(offering, resources_not_requested)},
            "taints": taint_values(&offering.taints),
            "startupTaints": taint_values(startup_taints),
            "expireAfter": "Never",
        },
    })
}

/// The requests of a NodeClaim: GPUs, and all extended resources except `resources_not_requested`. Karpenter counts a node as
/// initialized only when it shows some of each. Some resources, such as network adapters, a node has only if they are requested.
fn requests(offering: &OfferingSpec, resources_not_requested: &[Arc<str>]) -> Map<String, Value> {
    let gpus = offering.gpu.as_ref().filter(|_| offering.gpus > 0);
    let gpus = gpus.map(|gpu| (gpu.resource.to_string(), json!(offering.gpus.to_string())));
    let others = offering.allocatable.iter().filter(|(name, amount)| {
        **amount > 0 && is_extended(name) && !resources_not_requested.contains(name)
    });
    gpus.into_iter()
        .chain(others.map(|(name, amount)| (name.to_string(), json!(amount.to_string()))))
        .collect()
}

pub(crate) fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::NoSchedule => "NoSchedule",
        Effect::PreferNoSchedule => "PreferNoSchedule",
        Effect::NoExecute => "NoExecute",
    }
}

/// Which claim an object is for, by its labels and annotations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimIdentity {
    pub id: ClaimId,
    pub pool: Arc<str>,
    pub offering: Arc<str>,
}

/// The claim that a NodeClaim is for, if Muster created it.
pub fn claim_identity(claim: &NodeClaim) -> Option<ClaimIdentity> {
    let labels = claim.metadata.labels.as_ref()?;
    let annotations = claim.metadata.annotations.as_ref()?;
    let id = labels.get(CLAIM)?.parse().ok()?;
    Some(ClaimIdentity {
        id: ClaimId(id),
        pool: labels.get(POOL)?.as_str().into(),
        offering: annotations.get(OFFERING)?.as_str().into(),
    })
}

#[cfg(test)]
mod tests {
    use muster_api::{Provider, read_texts};

    use crate::provision::karpenter::*;

    /// The requests of a NodeClaim whose offering has this allocatable.
    fn requests_of(allocatable: &str, resources_not_requested: &str) -> Value {
        let text = format!(
            "{{kind: Pool, metadata: {{name: p}}, spec: {{tier: t, \
             provider: {{karpenter: {{nodeClassRef: {{group: g, kind: k, name: n}}, resourcesNotRequested: {resources_not_requested}}}}}, \
             offerings: [{{instanceType: i, zone: z, allocatable: {allocatable}}}]}}}}"
        );
        let mut read = read_texts(&[("pool.yaml", &text)]).expect("it is good");
        let pool = read.pools.remove(0);
        let Provider::Karpenter(karpenter) = pool.provider else { panic!("{:?}", pool.provider) };
        let mut offering = pool.spec.offerings[0].clone();
        offering.allocatable.insert("token.muster.sh/0".into(), 1);
        node_claim(ClaimId(1), "p", &karpenter, &offering)["spec"]["resources"]["requests"].clone()
    }

    /// The required capacity type of a NodeClaim in a pool of this tier whose offering has this field.
    fn capacity_type_of(tier: &str, field: &str) -> Value {
        let text = format!(
            "{{kind: Pool, metadata: {{name: p}}, spec: {{tier: {tier}, \
             provider: {{karpenter: {{nodeClassRef: {{group: g, kind: k, name: n}}}}}}, \
             offerings: [{{instanceType: i, zone: z, {field} allocatable: {{cpu: 4}}}}]}}}}"
        );
        let mut read = read_texts(&[("pool.yaml", &text)]).expect("it is good");
        let pool = read.pools.remove(0);
        let Provider::Karpenter(karpenter) = pool.provider else { panic!("{:?}", pool.provider) };
        let claim = node_claim(ClaimId(1), "p", &karpenter, &pool.spec.offerings[0]);
        let all = claim["spec"]["requirements"].as_array().expect("a list").clone();
        let mut named = all.into_iter().filter(|one| one["key"] == CAPACITY_TYPE);
        let one = named.next().expect("a capacity type is required");
        assert_eq!(named.next(), None);
        json!([one["operator"], one["values"]])
    }

    #[test]
    fn node_claim_excludes_spot_unless_offering_or_tier_names_it() {
        assert_eq!(capacity_type_of("on-demand", ""), json!(["In", ["on-demand"]]));
        assert_eq!(capacity_type_of("reserved", ""), json!(["In", ["reserved"]]));
        assert_eq!(capacity_type_of("spot", ""), json!(["In", ["spot"]]));
        assert_eq!(
            capacity_type_of("on-demand", "capacityType: '',"),
            json!(["In", ["on-demand"]])
        );
        assert_eq!(capacity_type_of("gold", ""), json!(["NotIn", ["spot"]]));
        let field = "capacityType: spot,";
        assert_eq!(capacity_type_of("on-demand", field), json!(["In", ["spot"]]));
    }

    #[test]
    fn node_claim_requests_gpus_and_extended_resources() {
        let all = "{cpu: 190, memory: 1Ti, pods: 110, hugepages-2Mi: 1Gi, nvidia.com/gpu: 8, \
                   vpc.amazonaws.com/efa: 32, rdma/hca: 4, example.com/none: 0}";
        assert_eq!(
            requests_of(all, "[]"),
            json!({"nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "32", "rdma/hca": "4"})
        );
        assert_eq!(
            requests_of(all, "[rdma/hca]"),
            json!({"nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "32"})
        );
        assert_eq!(requests_of("{cpu: 4}", "[]"), json!({}));
    }
}
