//! `kind: Queue`.

use muster_core::queue::QueueSpec;

use crate::amounts::quota;
use crate::fields::Fields;
use crate::finding::Mark;
use crate::names::{NAME_RULE, is_name};
use crate::object::Metadata;

/// A queue and the fields that other objects must agree with.
#[derive(Debug)]
pub(crate) struct DeclaredQueue {
    pub(crate) spec: QueueSpec,
    pub(crate) name: Mark,
    /// Where it names its parent.
    pub(crate) parent: Option<Mark>,
    /// Where it names each of its tiers.
    pub(crate) tiers: Vec<Mark>,
}

/// Reads a queue's spec.
pub(crate) fn read(metadata: Metadata<'_>, spec: &Fields<'_>) -> DeclaredQueue {
    let mut queue = QueueSpec::open(metadata.name);
    let parent = spec.get("parent");
    let parent_name = parent.as_ref().and_then(|value| value.text_with(is_name, NAME_RULE));
    queue.parent = parent_name.map(Into::into);
    if let Some(value) = spec.get("weight") {
        queue.weight = value.count(1..=1_000_000).unwrap_or(queue.weight);
        value.not_acted_on();
    }
    if let Some(value) = spec.get("guaranteed") {
        queue.guaranteed = quota(&value);
        value.not_acted_on();
    }
    queue.limit = spec.get("limit").as_ref().map(quota).unwrap_or_default();
    let mut tiers = Vec::new();
    for value in spec.list("tiers") {
        if let Some(tier) = value.text() {
            queue.tiers.push(tier.into());
            tiers.push(value.mark());
        }
    }
    if let Some(slice) = spec.get("timeSlice") {
        spec.span_above_zero("timeSlice");
        slice.not_acted_on();
    }
    let parent = parent.filter(|_| parent_name.is_some()).map(|value| value.mark());
    DeclaredQueue { spec: queue, name: metadata.mark, parent, tiers }
}
