//! No pool ever has more nodes, GPUs or spend than its limits, with what is only asked for included.
//!
//! A limit that is lowered takes no node away, and when the controller has heard of it cannot be seen: what a pool asks for
//! is held against the widest limits that it ever had.

use std::collections::BTreeMap;

use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::Value;

use super::doubts::{Doubts, Moment};
use super::seen::Seen;

/// Nodes, GPUs, and money per hour: what there is of them, or may be.
type Figures = [f64; 3];
const NAMES: [(&str, &str); 3] = [("nodes", "nodes"), ("gpus", "GPUs"), ("hourlySpend", "an hour")];

/// What makes an offering one: where it is in a pool, and where in a claim.
const OFFERING: [(&str, &str); 3] = [
    ("instanceType", "node.kubernetes.io/instance-type"),
    ("zone", "topology.kubernetes.io/zone"),
    ("capacityType", "karpenter.sh/capacity-type"),
];

/// Far less than any price, and more than a sum of prices is off.
const ROUNDING: f64 = 1e-6;

#[derive(Default)]
pub(super) struct Pools {
    /// The widest limits that each pool ever had.
    limits: BTreeMap<String, Figures>,
    doubts: Doubts<Asked>,
}

/// What a pool had when one more was asked of it.
struct Asked {
    pool: String,
    claim: String,
    has: Figures,
}

impl Pools {
    pub(super) fn see(&mut self, pool: &DynamicObject) {
        let limits = &pool.data["spec"]["limits"];
        let said = NAMES.map(|(field, _)| number(&limits[field]).unwrap_or(f64::INFINITY));
        let widest = self.limits.entry(pool.name_any()).or_insert(said);
        *widest = std::array::from_fn(|at| widest[at].max(said[at]));
    }

    /// One more node is asked for.
    pub(super) fn asked(&mut self, seen: &Seen, claim: &str, now: Moment) {
        let Some(pool) = seen.claims.get(claim).and_then(pool_of) else { return };
        let spec = seen.pools.get(pool).map(|pool| &pool.data["spec"]);
        let mut has = [0.0; 3];
        let stays = |one: &&DynamicObject| one.metadata.deletion_timestamp.is_none();
        for one in seen.claims.values().filter(stays).filter(|one| pool_of(one) == Some(pool)) {
            let offering = spec.and_then(|spec| offering_of(spec, one));
            let figure = |at: &str| offering.and_then(|offering| number(offering.pointer(at)?));
            let each = [1.0, figure("/gpu/count").unwrap_or(0.0), figure("/price").unwrap_or(0.0)];
            has = std::array::from_fn(|at| has[at] + each[at]);
        }
        let (pool, claim) = (pool.to_owned(), claim.to_owned());
        self.doubts.add(now, Asked { pool, claim, has });
    }

    pub(super) fn look(&mut self, now: Moment) -> Vec<String> {
        let limits = &self.limits;
        self.doubts.settle(now, |_, Asked { pool, claim, has }| {
            let limits = limits.get(pool)?;
            let at = (0..has.len()).find(|at| has[*at] > limits[*at] + ROUNDING)?;
            let (has, limit, what) = (has[at], limits[at], NAMES[at].1);
            Some(format!("the pool {pool} has {has} {what} of {limit} with the claim {claim}"))
        })
    }

    pub(super) fn is_settled(&self) -> bool {
        self.doubts.is_empty()
    }
}

fn pool_of(claim: &DynamicObject) -> Option<&str> {
    claim.labels().get("muster.sh/pool").map(|pool| &**pool)
}

/// What a claim asks for, among what its pool offers.
fn offering_of<'a>(spec: &'a Value, claim: &DynamicObject) -> Option<&'a Value> {
    let wants = claim.data.pointer("/spec/requirements").and_then(Value::as_array)?;
    let wanted = |key: &str| {
        let one = wants.iter().find(|one| one["key"] == key)?;
        one.pointer("/values/0").and_then(Value::as_str)
    };
    let is_it = |offering: &&Value| {
        OFFERING.iter().all(|(field, key)| offering[field].as_str() == wanted(key))
    };
    spec["offerings"].as_array()?.iter().find(is_it)
}

/// A number, also one that is written as text.
fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}
