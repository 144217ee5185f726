//! Release nodes that are not needed: leftovers at once, idle nodes after their time, cheapest to lose first.

use std::cmp::Reverse;

use muster_core::id::{ClaimId, PoolIdx};
use muster_core::order::ClaimState;
use muster_core::plan::{Action, Plan, Target};
use muster_core::proactive::Consolidate;

use super::inventory::PoolInventory;
use super::pools::push_alone;
use crate::cycle::{Cycle, earliest};
use crate::provision::stockout_odds;

/// Releases claims that have failed or retired, and retires nodes that are too old. A claim that was only put off may
/// still come.
pub(super) fn release_leftovers(cycle: &mut Cycle<'_>, held: &mut PoolInventory, plan: &mut Plan) {
    let world = cycle.scratch.world;
    for id in std::mem::take(&mut held.retired) {
        push_alone(plan, Action::Release { claim: id });
    }
    for id in std::mem::take(&mut held.failed) {
        match cycle.retry(id) {
            Some(_) => held.coming.push(id),
            None => {
                let claim = &world.claims()[&id];
                if matches!(claim.state, ClaimState::Failed(failure) if failure.is_transient()) {
                    held.unreliable.push(claim.offering);
                }
                push_alone(plan, Action::Release { claim: id });
            }
        }
    }
    let mut overdue = Vec::new();
    for id in &held.coming {
        match world.claim_due(*id) {
            Some((_, due)) if due <= cycle.now => overdue.push(*id),
            due => cycle.wake = earliest(cycle.wake, due.map(|(_, due)| due)),
        }
    }
    held.coming.retain(|id| !overdue.contains(id));
    for id in overdue {
        held.unreliable.push(world.claims()[&id].offering);
        push_alone(plan, Action::Release { claim: id });
    }
    expired(cycle, held, plan);
}

/// Releases nodes that have grown too old; those in use are retired.
fn expired(cycle: &mut Cycle<'_>, held: &mut PoolInventory, plan: &mut Plan) {
    let world = cycle.scratch.world;
    let mut wake = None;
    let mut is_old = |id: &ClaimId| {
        let claim = &world.claims()[id];
        let Some(age) = world.pools()[claim.offering.pool].spec.expire_after else { return false };
        let due = claim.requested + age;
        if due > cycle.now {
            wake = earliest(wake, Some(due));
        }
        due <= cycle.now
    };
    let old: Vec<ClaimId> = (held.idle.iter().map(|(id, _)| id))
        .chain(held.stopped.iter().filter(|id| world.claims()[*id].state == ClaimState::Stopped))
        .filter(|id| is_old(id))
        .copied()
        .collect();
    let old_in_use: Vec<ClaimId> =
        held.used.iter().map(|(id, _)| *id).filter(|id| is_old(id)).collect();
    cycle.wake = earliest(cycle.wake, wake);
    held.idle.retain(|(id, _)| !old.contains(id));
    held.stopped.retain(|id| !old.contains(id));
    for claim in old {
        push_alone(plan, Action::Release { claim });
    }
    held.used.retain(|(id, _)| !old_in_use.contains(id));
    for claim in old_in_use {
        push_alone(plan, Action::Retire { claim });
    }
}

/// Releases what a pool has above its target; stops nodes instead where stopped ones are wanted.
pub(super) fn release_surplus(
    cycle: &mut Cycle<'_>,
    pool: PoolIdx,
    target: Target,
    held: PoolInventory,
    plan: &mut Plan,
) {
    let world = cycle.scratch.world;
    let spec = &world.pools()[pool].spec;
    let to_stop = target.stopped.saturating_sub(held.stopped.len() as u32) as usize;
    for claim in held.stopped.iter().skip(target.stopped as usize) {
        if world.claims()[claim].state == ClaimState::Stopped {
            push_alone(plan, Action::Release { claim: *claim });
        }
    }
    // Nodes under way that are not wanted any more are released at once; the last requested first.
    let free = held.free();
    let wanted = target.free.saturating_sub(free) as usize + to_stop;
    let mut coming = held.coming;
    coming.sort_unstable();
    let known = |id: &ClaimId| world.claims().contains_key(id);
    for claim in coming.split_off(wanted.min(coming.len())).into_iter().filter(known) {
        push_alone(plan, Action::Release { claim });
    }
    for claim in coming.into_iter().filter(known) {
        match cycle.retry(claim) {
            Some(Ok(retry)) => push_alone(plan, retry),
            Some(Err(later)) => cycle.wake = earliest(cycle.wake, Some(later)),
            None => {}
        }
    }
    let idle_since = |node| world.node(node).expect("it is here").idle_since;
    let mut spare = free.saturating_sub(target.free);
    let mut idle = held.idle;
    idle.sort_by_key(|(id, node)| {
        let offering = world.claims()[id].offering;
        let odds = stockout_odds(world, cycle.now, offering);
        // An expensive node that is easily had again is the cheapest to lose; then the one that was idle for longest.
        let worth = world.offering(offering).spec.marginal_price().0 as f64 * (1.0 - odds);
        (Reverse(worth as i64), idle_since(*node), *id)
    });
    let can_stop =
        |id: &ClaimId| world.offering(world.claims()[id].offering).spec.start_time.is_some();
    let mut stops = to_stop;
    idle.retain(|(id, _)| {
        let stop = stops > 0 && spare > 0 && can_stop(id);
        if stop {
            stops -= 1;
            spare -= 1;
            push_alone(plan, Action::Park { claim: *id });
        }
        !stop
    });
    // A pool that never consolidates still releases nodes when gangs wait for room in it, since those could not use
    // them.
    if spec.consolidate == Consolidate::Never && !cycle.limits.contended_pools.contains(&pool) {
        return;
    }
    for (claim, node) in idle {
        if spare == 0 {
            break;
        }
        let due = idle_since(node) + spec.idle_after;
        if due <= cycle.now {
            spare -= 1;
            push_alone(plan, Action::Release { claim });
        } else {
            cycle.wake = earliest(cycle.wake, Some(due));
        }
    }
}
