//! Order ahead of need what a pool lacks.

use muster_core::id::{ClaimId, OfferingRef, PoolIdx};
use muster_core::order::ClaimState;
use muster_core::plan::{Action, Plan, Target};

use super::inventory::PoolInventory;
use super::pools::push_alone;
use crate::cycle::{Cycle, earliest};
use crate::provision::{avoided, stockout_odds};

/// Wakes and requests as many nodes as the target lacks. Nodes that are to be stopped are booted first.
pub(super) fn order_ahead(
    cycle: &mut Cycle<'_>,
    pool: PoolIdx,
    target: Target,
    held: &mut PoolInventory,
    plan: &mut Plan,
) {
    let world = cycle.scratch.world;
    let have = held.free() + held.coming.len() as u32;
    let mut lacking = target.free.saturating_sub(have);
    let mut claims: Vec<(ClaimId, OfferingRef)> = Vec::new();
    while lacking > 0
        && let Some(at) =
            held.stopped.iter().position(|id| world.claims()[id].state == ClaimState::Stopped)
    {
        let id = held.stopped.remove(at);
        claims.push((id, world.claims()[&id].offering));
        lacking -= 1;
    }
    let spare = (have + claims.len() as u32).saturating_sub(target.free);
    let to_stop = target.stopped.saturating_sub(held.stopped.len() as u32);
    for (mut lacking, to_stop) in [(lacking, false), (to_stop.saturating_sub(spare), true)] {
        while lacking > 0
            && let Some(offering) = best(cycle, pool, &held.unreliable, to_stop)
        {
            cycle.scratch.open_paper(offering);
            claims.push((ClaimId(world.next_claim().0 + cycle.given.claims), offering));
            cycle.given.claims += 1;
            lacking -= 1;
        }
    }
    held.coming.extend(claims.iter().map(|(id, _)| *id));
    if !claims.is_empty() {
        push_alone(plan, Action::Stock { claims });
    }
}

/// The offering of a pool that is likely to have a node, at the least price; one whose nodes can be stopped if the
/// node is to be stopped. Offerings that have just proved unreliable are left out.
fn best(
    cycle: &mut Cycle<'_>,
    pool: PoolIdx,
    unreliable: &[OfferingRef],
    to_stop: bool,
) -> Option<OfferingRef> {
    let (world, now) = (cycle.scratch.world, cycle.now);
    let mut open: Vec<OfferingRef> = Vec::new();
    for slot in 0..world.pools()[pool].offerings.len() {
        let offering = OfferingRef { pool, slot: slot as u16 };
        let can_stop = world.offering(offering).spec.start_time.is_some();
        if cycle.scratch.room(offering) == 0
            || unreliable.contains(&offering)
            || to_stop && !can_stop
        {
            continue;
        }
        match avoided(cycle, offering) {
            None => open.push(offering),
            until => cycle.wake = earliest(cycle.wake, until),
        }
    }
    open.into_iter().min_by_key(|offering| {
        let odds = stockout_odds(world, now, *offering);
        let price = world.offering(*offering).spec.marginal_price();
        // Likely or not, then the price: a little better odds are not worth a higher one.
        ((odds * 10.0) as u32 / 5, price, (odds * 10.0) as u32, *offering)
    })
}
