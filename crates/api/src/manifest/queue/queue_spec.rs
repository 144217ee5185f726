//! Reads `kind: Queue`.

use muster_core::queue::QueueSpec;

use crate::manifest::queue::allowed;
use crate::manifest::queue::quota;
use crate::manifest::queue::quota::DeclaredQuota;
use crate::read::finding::Mark;
use crate::read::object::Metadata;
use crate::yaml::fields::Fields;
use crate::yaml::names::{NAME_RULE, is_name};

/// A queue and the fields that are checked against other objects.
#[derive(Debug)]
pub(crate) struct DeclaredQueue {
    pub(crate) spec: QueueSpec,
    pub(crate) name: Mark,
    /// Where it names its parent.
    pub(crate) parent: Option<Mark>,
    /// Its guarantee, and where each resource is written.
    pub(crate) guaranteed: DeclaredQuota,
    /// Its limit, and where each resource is written.
    pub(crate) limit: DeclaredQuota,
    /// Where it names each of its tiers.
    pub(crate) tiers: Vec<Mark>,
}

/// Reads a queue's spec.
pub(crate) fn read(metadata: Metadata<'_>, spec: &Fields<'_>) -> DeclaredQueue {
    let mut queue = QueueSpec::open(metadata.name);
    let parent = spec.get("parent");
    let parent_name = parent.as_ref().and_then(|value| value.text_with(is_name, NAME_RULE));
    queue.parent = parent_name.map(Into::into);
    let weight = spec.get("weight").and_then(|value| value.count(1..=1_000_000));
    queue.weight = weight.unwrap_or(queue.weight);
    let quota = |name| spec.get(name).as_ref().map(quota::read).unwrap_or_default();
    let (guaranteed, limit) = (quota("guaranteed"), quota("limit"));
    let user_limit = quota("userLimit");
    spec.report(guaranteed.never_had(&limit.quota));
    spec.report(user_limit.never_reached(&limit.quota));
    queue.guaranteed = guaranteed.quota.clone();
    queue.limit = limit.quota.clone();
    queue.user_limit = user_limit.quota;
    // Zero is allowed: past usage then does not count at all.
    queue.half_life = spec.span("halfLife");
    let mut tiers = Vec::new();
    for value in spec.list("tiers") {
        if let Some(tier) = value.text() {
            queue.tiers.push(tier.into());
            tiers.push(value.mark());
        }
    }
    queue.time_slice = spec.span_above_zero("timeSlice");
    // Zero is allowed: capacity is then reclaimed at once, and no gang of the queue is preempted, respectively.
    queue.reclaim_within = spec.span("reclaimWithin");
    let evictions = spec.get("evictionsPerHour").and_then(|value| value.count(0..=1_000_000));
    queue.evictions_per_hour = evictions;
    queue.allowed = allowed::read(spec);
    let parent = parent.filter(|_| parent_name.is_some()).map(|value| value.mark());
    DeclaredQueue { spec: queue, name: metadata.mark, parent, guaranteed, limit, tiers }
}
