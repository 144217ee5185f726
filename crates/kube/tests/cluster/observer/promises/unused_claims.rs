//! Every NodeClaim has a use: an order that names it, a pod on its node, or a pool that keeps nodes. A claim without a
//! use must be terminating when the idle time of its pool is over.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::Value;

use super::super::pod_fields::node_of;
use super::super::snapshot::Snapshot;
use super::super::suspected::Moment;

/// How much longer than its idle time a claim may be unused: a killed controller takes this long to be replaced.
const GRACE: Duration = Duration::from_secs(60);
/// Fields of a pool's spec that make it keep nodes without a gang.
const KEEPS: [&str; 4] = ["warm", "buffer", "schedules", "forecast"];

#[derive(Default)]
pub(crate) struct UnusedClaims {
    /// Since when a claim is unused.
    since: BTreeMap<String, Instant>,
    /// When the claim of each node was seen to be released.
    pub(crate) returned: BTreeMap<String, Instant>,
}

impl UnusedClaims {
    pub(crate) fn claim(&mut self, claim: &DynamicObject, is_there: bool, now: Moment) {
        if (claim.metadata.deletion_timestamp.is_some() || !is_there)
            && let Some(node) = node_of_claim(claim)
        {
            self.returned.entry(node.to_owned()).or_insert(now.tick);
        }
    }

    /// Claims that are unused for too long, each reported once per period.
    pub(crate) fn check(&mut self, snapshot: &Snapshot, now: Moment) -> Vec<String> {
        let used: BTreeSet<&str> =
            snapshot.running_pods().filter_map(|(_, pod)| node_of(pod)).collect();
        let ordered: BTreeSet<&str> = snapshot.orders.values().flat_map(claims_of).collect();
        let mut broken = Vec::new();
        for (name, claim) in &snapshot.claims {
            let Some(pool) = claim.labels().get("muster.sh/pool") else { continue };
            let spec = snapshot.pools.get(pool).and_then(|pool| pool.data.get("spec"));
            let is_kept =
                spec.is_some_and(|spec| KEEPS.iter().any(|kept| spec.get(kept).is_some()));
            let is_used = node_of_claim(claim).is_some_and(|node| used.contains(node));
            let is_leaving = claim.metadata.deletion_timestamp.is_some();
            if is_kept || is_used || ordered.contains(&**name) || is_leaving {
                self.since.remove(name);
                continue;
            }
            let idle = spec.and_then(|spec| spec["idleAfter"].as_str()).map_or(GRACE, duration);
            let long = now.tick - *self.since.entry(name.clone()).or_insert(now.tick);
            if long > idle + GRACE {
                broken.push(format!("the claim {name} is unused for {long:?}"));
                self.since.insert(name.clone(), now.tick);
            }
        }
        self.since.retain(|name, _| snapshot.claims.contains_key(name));
        broken
    }
}

/// The claims that an order waits for.
fn claims_of(order: &DynamicObject) -> impl Iterator<Item = &str> {
    let claims = order.data.pointer("/spec/claims").and_then(Value::as_array);
    claims.into_iter().flatten().filter_map(|one| one["name"].as_str())
}

fn node_of_claim(claim: &DynamicObject) -> Option<&str> {
    claim.data.pointer("/status/nodeName").and_then(Value::as_str).filter(|node| !node.is_empty())
}

/// `10s`, `5m` or `1h`: the durations that tests write.
fn duration(text: &str) -> Duration {
    let (number, unit) = text.split_at(text.len().saturating_sub(1));
    let each = match unit {
        "h" => 3_600,
        "m" => 60,
        _ => 1,
    };
    Duration::from_secs(number.parse::<u64>().unwrap_or(600) * each)
}
