//! No pool ever exceeds its limits of nodes, GPUs or spend, claims without a node included.
//!
//! A lowered limit removes no node, and it is not visible when the controller has seen the change: purchases are
//! checked against the highest limits that the pool ever had.

use std::collections::BTreeMap;

use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::Value;

use super::super::snapshot::Snapshot;
use super::super::suspected::{Moment, Suspected};

/// Nodes, GPUs, and spend per hour: an amount or a limit.
type Figures = [f64; 3];
const NAMES: [(&str, &str); 3] = [("nodes", "nodes"), ("gpus", "GPUs"), ("hourlySpend", "an hour")];

/// The fields that identify an offering, in a pool and in a claim.
const OFFERING: [(&str, &str); 3] = [
    ("instanceType", "node.kubernetes.io/instance-type"),
    ("zone", "topology.kubernetes.io/zone"),
    ("capacityType", "karpenter.sh/capacity-type"),
];

/// Less than any price, and more than the rounding error of a sum.
const ROUNDING: f64 = 1e-6;

#[derive(Default)]
pub(crate) struct PoolLimits {
    /// The highest limits that each pool ever had.
    limits: BTreeMap<String, Figures>,
    suspected: Suspected<Purchase>,
}

/// The figures of a pool when a claim was added.
struct Purchase {
    pool: String,
    claim: String,
    has: Figures,
}

impl PoolLimits {
    pub(crate) fn see(&mut self, pool: &DynamicObject) {
        let limits = &pool.data["spec"]["limits"];
        let limits_now = NAMES.map(|(field, _)| number(&limits[field]).unwrap_or(f64::INFINITY));
        let widest = self.limits.entry(pool.name_any()).or_insert(limits_now);
        *widest = std::array::from_fn(|at| widest[at].max(limits_now[at]));
    }

    /// A claim was added.
    pub(crate) fn claim_added(&mut self, snapshot: &Snapshot, claim: &str, now: Moment) {
        let Some(pool) = snapshot.claims.get(claim).and_then(pool_of) else { return };
        let spec = snapshot.pools.get(pool).map(|pool| &pool.data["spec"]);
        let mut has = [0.0; 3];
        let stays = |one: &&DynamicObject| one.metadata.deletion_timestamp.is_none();
        for one in snapshot.claims.values().filter(stays).filter(|one| pool_of(one) == Some(pool)) {
            let offering = spec.and_then(|spec| offering_of(spec, one));
            let figure = |at: &str| offering.and_then(|offering| number(offering.pointer(at)?));
            let each = [1.0, figure("/gpu/count").unwrap_or(0.0), figure("/price").unwrap_or(0.0)];
            has = std::array::from_fn(|at| has[at] + each[at]);
        }
        let (pool, claim) = (pool.to_owned(), claim.to_owned());
        self.suspected.add(now, Purchase { pool, claim, has });
    }

    pub(crate) fn check(&mut self, now: Moment) -> Vec<String> {
        let limits = &self.limits;
        self.suspected.settle(now, |_, Purchase { pool, claim, has }| {
            let limits = limits.get(pool)?;
            let at = (0..has.len()).find(|at| has[*at] > limits[*at] + ROUNDING)?;
            let (has, limit, what) = (has[at], limits[at], NAMES[at].1);
            Some(format!("the pool {pool} has {has} {what} of {limit} with the claim {claim}"))
        })
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.suspected.is_empty()
    }
}

fn pool_of(claim: &DynamicObject) -> Option<&str> {
    claim.labels().get("muster.sh/pool").map(|pool| &**pool)
}

/// The offering of its pool that a claim asks for.
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

/// A number, or a number written as text.
fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}
