//! Step 1: order the gangs that wait.

use muster_core::World;
use muster_core::gang::Phase;
use muster_core::id::GangId;
use muster_core::time::Time;

use crate::policy::{Behind, Policy};

/// Gangs that wait and have no order assembling, first to be served first.
pub(crate) fn order(world: &World, now: Time, policy: &Policy) -> Vec<GangId> {
    let discipline = policy.order.discipline();
    let mut queue: Vec<(i64, f64, Time, GangId)> = Vec::with_capacity(world.pending().len());
    for id in world.pending() {
        let gang = world.gang(*id).expect("it is pending");
        if gang.phase == Phase::Waiting {
            queue.push((
                -i64::from(gang.spec.priority),
                discipline.rank(world, gang, now),
                gang.submitted,
                *id,
            ));
        }
    }
    queue.sort_by(|a, b| {
        (a.0.cmp(&b.0)).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)).then(a.3.cmp(&b.3))
    });
    if discipline.behind() == Behind::BackfillOldest {
        oldest_first(&mut queue);
    }
    queue.into_iter().map(|(.., id)| id).collect()
}

/// Moves the oldest of the highest priority to the front; the others keep their order.
fn oldest_first(queue: &mut [(i64, f64, Time, GangId)]) {
    let Some(highest) = queue.first().map(|entry| entry.0) else { return };
    let top = queue.partition_point(|entry| entry.0 == highest);
    let oldest = (0..top).min_by_key(|at| (queue[*at].2, queue[*at].3));
    if let Some(oldest) = oldest {
        queue[..=oldest].rotate_right(1);
    }
}

/// Gangs behind a reservation, in the order they may go before it.
pub(crate) fn order_backfill(world: &World, now: Time, policy: &Policy, behind: &mut [GangId]) {
    let discipline = policy.order.discipline();
    let rank =
        |id: &GangId| discipline.backfill_rank(world, world.gang(*id).expect("it waits"), now);
    if behind.first().and_then(rank).is_some() {
        behind.sort_by_cached_key(|id| ordered(rank(id).unwrap_or(0.0)));
    }
}

/// A float as an integer of the same order.
fn ordered(value: f64) -> i64 {
    let bits = value.to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}
