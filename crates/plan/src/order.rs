//! Step 1: order the gangs that wait.

use muster_core::World;
use muster_core::gang::Phase;
use muster_core::id::GangId;

use crate::policy::{Policy, QueueOrder};

/// Gangs that wait and have no order assembling, first to be served first.
pub(crate) fn order(world: &World, policy: &Policy) -> Vec<GangId> {
    let waits = |id: &GangId| world.gang(*id).is_some_and(|gang| gang.phase == Phase::Waiting);
    let mut queue: Vec<GangId> = world.pending().iter().copied().filter(waits).collect();
    match policy.order {
        QueueOrder::Fifo | QueueOrder::FifoOvertake => queue.sort_by_cached_key(|id| {
            let gang = world.gang(*id).expect("it is pending");
            (std::cmp::Reverse(gang.spec.priority), gang.submitted, *id)
        }),
    }
    queue
}
