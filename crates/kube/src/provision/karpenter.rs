//! NodeClaims: how one machine is asked for.
//!
//! They stand alone, without a node pool: Karpenter then neither consolidates nor replaces them, and only launches,
//! registers and deletes. Everything else is Muster's to decide.

use std::sync::Arc;

use muster_api::Karpenter;
use muster_core::constraint::{Effect, Taint};
use muster_core::id::ClaimId;
use muster_core::pool::OfferingSpec;
use muster_core::resource::is_extended;
use serde_json::{Map, Value, json};

use crate::objects::node_claim::NodeClaim;

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
pub fn node_claim(id: ClaimId, pool: &str, asked: &Karpenter, offering: &OfferingSpec) -> Value {
    let mut labels = json!({CLAIM: id.0.to_string(), POOL: pool, MANAGED_BY: MUSTER});
    for (key, value) in &offering.labels {
        labels[&**key] = json!(value);
    }
    let wants = [
        (INSTANCE_TYPE, &offering.instance_type),
        (ZONE, &offering.zone),
        (CAPACITY_TYPE, &offering.capacity_type),
    ];
    let mut requirements: Vec<Value> = wants
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(key, value)| json!({"key": key, "operator": "In", "values": [value]}))
        .collect();
    if offering.capacity_type.is_empty() {
        // Karpenter takes what is cheapest: nodes that may be taken away are bought only where somebody asks for them.
        let not_spot = json!({"key": CAPACITY_TYPE, "operator": "NotIn", "values": ["spot"]});
        requirements.push(not_spot);
    }
    let Karpenter { node_class_ref: class, startup_taints, resources_not_requested } = asked;
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
            "resources": {"requests": requests(offering, resources_not_requested)},
            "taints": spoken(&offering.taints),
            "startupTaints": spoken(startup_taints),
            "expireAfter": "Never",
        },
    })
}

/// What a claim asks for by name: GPUs, and extended resources but for these. A machine counts as initialized only when it
/// shows some of each, and how many is for Muster to see. Some, such as network adapters, it only has if they are asked for.
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

#[cfg(test)]
mod tests {
    use muster_api::{Provider, read_texts};

    use crate::provision::karpenter::*;

    /// What a claim asks for where the pool's only offering has this allocatable.
    fn requests_of(allocatable: &str, resources_not_requested: &str) -> Value {
        let text = format!(
            "{{kind: Pool, metadata: {{name: p}}, spec: {{tier: t, \
             provider: {{karpenter: {{nodeClassRef: {{group: g, kind: k, name: n}}, resourcesNotRequested: {resources_not_requested}}}}}, \
             offerings: [{{instanceType: i, zone: z, allocatable: {allocatable}}}]}}}}"
        );
        let mut read = read_texts(&[("pool.yaml", &text)]).expect("it is good");
        let pool = read.pools.remove(0);
        let Provider::Karpenter(asked) = pool.provider else { panic!("{:?}", pool.provider) };
        let mut offering = pool.spec.offerings[0].clone();
        offering.allocatable.insert("token.muster.sh/0".into(), 1);
        node_claim(ClaimId(1), "p", &asked, &offering)["spec"]["resources"]["requests"].clone()
    }

    /// What a claim requires of how its node is paid for, in a pool of this tier.
    fn capacity_type_of(tier: &str, said: &str) -> Value {
        let text = format!(
            "{{kind: Pool, metadata: {{name: p}}, spec: {{tier: {tier}, \
             provider: {{karpenter: {{nodeClassRef: {{group: g, kind: k, name: n}}}}}}, \
             offerings: [{{instanceType: i, zone: z, {said} allocatable: {{cpu: 4}}}}]}}}}"
        );
        let mut read = read_texts(&[("pool.yaml", &text)]).expect("it is good");
        let pool = read.pools.remove(0);
        let Provider::Karpenter(asked) = pool.provider else { panic!("{:?}", pool.provider) };
        let claim = node_claim(ClaimId(1), "p", &asked, &pool.spec.offerings[0]);
        let all = claim["spec"]["requirements"].as_array().expect("a list").clone();
        let mut named = all.into_iter().filter(|one| one["key"] == CAPACITY_TYPE);
        let one = named.next().expect("it says how the node is paid for");
        assert_eq!(named.next(), None);
        json!([one["operator"], one["values"]])
    }

    #[test]
    fn pool_whose_offering_says_no_capacity_type_never_buys_spot_unasked() {
        assert_eq!(capacity_type_of("on-demand", ""), json!(["In", ["on-demand"]]));
        assert_eq!(capacity_type_of("reserved", ""), json!(["In", ["reserved"]]));
        assert_eq!(capacity_type_of("spot", ""), json!(["In", ["spot"]]));
        assert_eq!(
            capacity_type_of("on-demand", "capacityType: '',"),
            json!(["In", ["on-demand"]])
        );
        assert_eq!(capacity_type_of("gold", ""), json!(["NotIn", ["spot"]]));
        let said = "capacityType: spot,";
        assert_eq!(capacity_type_of("on-demand", said), json!(["In", ["spot"]]));
    }

    #[test]
    fn a_claim_names_gpus_and_every_extended_resource_that_karpenter_knows() {
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
