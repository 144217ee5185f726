//! Who each claim is owed to: an order that names it, somebody on its node, or a pool that is to keep nodes. What is owed
//! to nobody must be on its way out when its pool's idle time is over.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use kube::ResourceExt;
use kube::api::{ApiResource, DynamicObject};
use serde_json::Value;

/// How much longer than its idle time a claim may be nobody's: a controller that was killed takes so long to be followed by
/// another.
const GRACE: Duration = Duration::from_secs(60);
/// What of a pool's spec says that it keeps nodes for nobody in particular.
const KEEPS: [&str; 4] = ["warm", "buffer", "schedules", "forecast"];

/// Every claim, and all that one may be owed to.
#[derive(Default)]
pub(crate) struct Owed {
    claims: BTreeMap<String, DynamicObject>,
    orders: BTreeMap<String, BTreeSet<String>>,
    pools: BTreeMap<String, DynamicObject>,
    since: BTreeMap<String, Instant>,
    /// When each node's claim was seen to be given back.
    returned: BTreeMap<String, Instant>,
}

/// The kinds that are looked at.
pub(crate) fn kinds() -> [ApiResource; 3] {
    let kind = |group: &str, version: &str, kind: &str, plural: &str| ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: format!("{group}/{version}"),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    };
    [
        kind("karpenter.sh", "v1", "NodeClaim", "nodeclaims"),
        kind("muster.sh", "v1alpha1", "Order", "orders"),
        kind("muster.sh", "v1alpha1", "Pool", "pools"),
    ]
}

impl Owed {
    /// An object is there, or is no more.
    pub(crate) fn see(&mut self, plural: &str, object: DynamicObject, is_there: bool) {
        let name = object.name_any();
        match plural {
            "nodeclaims" => {
                if (object.metadata.deletion_timestamp.is_some() || !is_there)
                    && let Some(node) = node_of(&object)
                {
                    self.returned.entry(node.to_owned()).or_insert_with(Instant::now);
                }
                put(&mut self.claims, name, object, is_there);
            }
            "orders" => {
                let claims = object.data.pointer("/spec/claims").and_then(Value::as_array);
                let names = claims.into_iter().flatten().filter_map(|one| one["name"].as_str());
                let names = names.map(str::to_owned).collect();
                put(&mut self.orders, name, names, is_there);
            }
            _ => put(&mut self.pools, name, object, is_there),
        }
    }

    /// When the claim of a node was seen to be given back.
    pub(crate) fn returned(&self, node: &str) -> Option<Instant> {
        self.returned.get(node).copied()
    }

    /// Claims that are nobody's for too long, each of them once in so long. `used` are the nodes somebody is on.
    pub(crate) fn look(&mut self, used: &BTreeSet<&str>) -> Vec<String> {
        let mut broken = Vec::new();
        let now = Instant::now();
        for (name, claim) in &self.claims {
            let Some(pool) = claim.labels().get("muster.sh/pool") else { continue };
            let spec = self.pools.get(pool).and_then(|pool| pool.data.get("spec"));
            let is_kept =
                spec.is_some_and(|spec| KEEPS.iter().any(|kept| spec.get(kept).is_some()));
            let is_used = node_of(claim).is_some_and(|node| used.contains(node));
            let is_ordered = self.orders.values().any(|claims| claims.contains(name));
            let is_leaving = claim.metadata.deletion_timestamp.is_some();
            if is_kept || is_used || is_ordered || is_leaving {
                self.since.remove(name);
                continue;
            }
            let idle = spec.and_then(|spec| spec["idleAfter"].as_str()).map_or(GRACE, duration);
            let since = *self.since.entry(name.clone()).or_insert(now);
            if now - since > idle + GRACE {
                broken.push(format!("the claim {name} is nobody's for {:?}", now - since));
                self.since.insert(name.clone(), now);
            }
        }
        let claims = &self.claims;
        self.since.retain(|name, _| claims.contains_key(name));
        broken
    }
}

fn put<T>(all: &mut BTreeMap<String, T>, name: String, one: T, is_there: bool) {
    match is_there {
        true => drop(all.insert(name, one)),
        false => drop(all.remove(&name)),
    }
}

fn node_of(claim: &DynamicObject) -> Option<&str> {
    claim.data.pointer("/status/nodeName").and_then(Value::as_str).filter(|node| !node.is_empty())
}

/// `10s`, `5m` or `1h`: what tests write.
fn duration(text: &str) -> Duration {
    let (number, unit) = text.split_at(text.len().saturating_sub(1));
    let each = match unit {
        "h" => 3_600,
        "m" => 60,
        _ => 1,
    };
    Duration::from_secs(number.parse::<u64>().unwrap_or(600) * each)
}
