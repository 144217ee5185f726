//! Order the nodes a gang lacks, and only those, as one order.
//!
//! The gang is placed by the same code as ever, on a world that has a few nodes more: free nodes are used first, then
//! nodes that are coming for no order, and nodes of an offering are opened on paper for the rest. Every offering is
//! tried, and mixes of kinds where they could be cheaper. The least expected cost wins: price, time to boot, and the
//! odds of a stock-out, in one sum.

use muster_core::World;
use muster_core::gang::{Gang, ProvisioningMode};
use muster_core::id::{GangId, OfferingRef, PoolIdx};
use muster_core::money::Money;
use muster_core::order::{ClaimState, OrderSpec};
use muster_core::pool::PoolUsage;
use muster_core::time::{Span, Time};
use muster_core::topology::ROOT;
use muster_core::verdict::Blocker;
use smallvec::SmallVec;

use super::claims::to_order_spec;
use super::draft::{Beside, Terms, Way, alike, draw_up, is_mix_worthwhile};
use crate::cycle::{Cycle, earliest};
use crate::place::{Ask, Asks, Want, asks};
use crate::policy::Failover;

/// Why nothing was ordered.
pub(crate) type Blockers = SmallVec<[Blocker; 1]>;

/// A possible order; the least is the best.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Bid {
    /// Its place in the operator's list, where that goes before cost.
    listed: usize,
    terms: Terms,
    way: Way,
}

/// What the cheapest order for a gang would be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quote {
    /// What its nodes cost until the gang is done.
    pub(super) nodes: Money,
    /// How long until all of them are there.
    pub(super) boot: Span,
}

/// What the cheapest order that lets the gang start would be; nothing is held for it.
///
/// # Errors
/// Says why nothing can be ordered now.
pub(super) fn quote(cycle: &mut Cycle<'_>, gang: &Gang) -> Result<Quote, Blockers> {
    let (bid, ..) = best_bid(cycle, gang, Beside::WhatIsFree)?;
    Ok(Quote { nodes: bid.terms.nodes, boot: bid.terms.boot })
}

/// Draws up the cheapest order that lets the gang start, and holds what it needs in the scratch.
///
/// # Errors
/// Says why nothing can be ordered now; the scratch is unchanged then.
pub(crate) fn provision(
    cycle: &mut Cycle<'_>,
    id: GangId,
    gang: &Gang,
) -> Result<OrderSpec, Blockers> {
    draw(cycle, id, gang, Beside::WhatIsFree)
}

/// The same on new nodes alone, although the gang would fit on what is free.
///
/// # Errors
/// Says why nothing can be ordered now; the scratch is unchanged then.
pub(crate) fn provision_new(
    cycle: &mut Cycle<'_>,
    id: GangId,
    gang: &Gang,
) -> Result<OrderSpec, Blockers> {
    draw(cycle, id, gang, Beside::Nothing)
}

fn draw(
    cycle: &mut Cycle<'_>,
    id: GangId,
    gang: &Gang,
    beside: Beside,
) -> Result<OrderSpec, Blockers> {
    let (best, asks, pivot) = best_bid(cycle, gang, beside)?;
    if cycle.scratch.world.offering(best.way.offering).health.is_out() {
        cycle.limits.probed.push(best.way.offering);
    }
    let (_, draft) =
        draw_up(cycle, gang, &asks, pivot, best.way, true).expect("it was drawn up a moment ago");
    Ok(to_order_spec(cycle, id, gang, draft))
}

/// The best of all offerings, the role it was chosen for, and what all roles ask.
fn best_bid(
    cycle: &mut Cycle<'_>,
    gang: &Gang,
    beside: Beside,
) -> Result<(Bid, Asks, usize), Blockers> {
    let world = cycle.scratch.world;
    if !may_order(world, gang) {
        return Err(SmallVec::from_elem(Blocker::ProvisioningOff, 1));
    }
    if let Some(until) = cooling_off(cycle, gang) {
        cycle.wake = earliest(cycle.wake, Some(until));
        return Err(SmallVec::from_elem(Blocker::CoolingOff { until }, 1));
    }
    let asks = asks(&cycle.scratch, gang);
    let pivot = pivot(cycle, &asks);
    let (offerings, mut blockers) = suitable(cycle, gang, &asks[pivot]);
    let mut best: Option<Bid> = None;
    for (listed, offering) in offerings.iter().enumerate() {
        let listed = if cycle.policy.failover == Failover::AsListed { listed } else { 0 };
        let mut bid = |mixed_kinds| {
            let way = Way { offering: *offering, mixed_kinds, beside };
            let (terms, _) = draw_up(cycle, gang, &asks, pivot, way, false)?;
            best = best.into_iter().chain([Bid { listed, terms, way }]).min();
            Some(())
        };
        bid(false);
        // Every mix of kinds that are alike is the same mix: it is drawn up with the first of them.
        let first = offerings.iter().find(|other| alike(world, **other, *offering));
        if first == Some(offering) && is_mix_worthwhile(world, &asks[pivot], &offerings, *offering)
        {
            bid(true);
        }
    }
    if let Some(best) = best {
        return Ok((best, asks, pivot));
    }
    let room = offerings.iter().map(|offering| cycle.scratch.room(*offering)).max();
    if let Some(room) = room.filter(|_| !blockers.iter().any(Blocker::is_unoffered)) {
        blockers.insert(0, Blocker::PoolsFull { room });
        let world = cycle.scratch.world;
        let usage = |pool| cycle.scratch.pool_usage(pool);
        blockers.extend(over_budget(world, &offerings, usage));
    }
    Err(blockers)
}

/// The first pool of these offerings that only its budget keeps from more nodes, at this usage.
pub(crate) fn over_budget(
    world: &World,
    offerings: &[OfferingRef],
    usage: impl Fn(PoolIdx) -> PoolUsage,
) -> Option<Blocker> {
    offerings.iter().find_map(|offering| {
        let pool = &world.pools()[offering.pool];
        let limit = pool.spec.limits.hourly_spend?;
        let left = pool.left_of_budget(usize::from(offering.slot), &usage(offering.pool), 0)?;
        Some(Blocker::Budget { pool: offering.pool, limit, left })
    })
}

/// Whether nodes may be bought for a gang, and there are pools.
pub(crate) fn may_order(world: &World, gang: &Gang) -> bool {
    gang.spec.provisioning.mode != ProvisioningMode::Never && !world.pools().is_empty()
}

/// Until when a gang whose orders keep failing does not order again.
fn cooling_off(cycle: &Cycle<'_>, gang: &Gang) -> Option<Time> {
    let last =
        gang.last_failure.filter(|_| gang.failed_orders >= gang.spec.provisioning.attempts)?;
    let until = last + cycle.policy.cool_off;
    (cycle.now < until).then_some(until)
}

/// Offerings that can take the hardest role's members now, and the blockers of the others.
fn suitable(cycle: &mut Cycle<'_>, gang: &Gang, hardest: &Ask) -> (Vec<OfferingRef>, Blockers) {
    let listed = offerings_for(cycle, gang, hardest);
    if listed.is_empty() {
        return (listed, SmallVec::from_elem(Blocker::NoOffering { role: hardest.role }, 1));
    }
    let sold = listed.iter().any(|offering| is_sold(cycle.scratch.world, *offering));
    let mut open = Vec::new();
    let mut avoided_until: Option<Time> = None;
    // Pools kept for gangs ahead are left out; the verdict names the gang ahead.
    for offering in
        listed.into_iter().filter(|offering| !cycle.limits.barred_pools.contains(&offering.pool))
    {
        match avoided(cycle, offering).or_else(|| probed(cycle, offering)) {
            Some(until) => avoided_until = earliest(avoided_until, Some(until)),
            None => open.push(offering),
        }
    }
    if !sold {
        // Coming nodes of those offerings may still be enough.
        return (open, SmallVec::from_elem(Blocker::NoOffering { role: hardest.role }, 1));
    }
    cycle.wake = earliest(cycle.wake, avoided_until);
    (open, avoided_until.map(|until| Blocker::OfferingsAvoided { until }).into_iter().collect())
}

/// How long after a request a provider that has nothing says so; a request without an answer by then was granted.
const ANSWER: Span = Span::secs(20);

/// Until when other gangs wait for the answer to a probe of an offering that had run out. Without that, all gangs
/// that wait would request from it at the same moment and fail.
fn probed(cycle: &Cycle<'_>, offering: OfferingRef) -> Option<Time> {
    let world = cycle.scratch.world;
    if !world.offering(offering).health.is_out() {
        return None;
    }
    if cycle.limits.probed.contains(&offering) {
        return Some(cycle.now + ANSWER);
    }
    let asked = world.claims().values().filter(|claim| {
        claim.offering == offering && claim.state == ClaimState::Requested && !claim.releasing
    });
    asked.map(|claim| claim.since + ANSWER).filter(|answer| *answer > cycle.now).max()
}

/// Offerings whose empty node takes at least one member, in the operator's order.
pub(crate) fn offerings_for(cycle: &mut Cycle<'_>, gang: &Gang, ask: &Ask) -> Vec<OfferingRef> {
    let world = cycle.scratch.world;
    let mut found = Vec::new();
    for (pool, listed) in world.pools().iter() {
        if !world.may_buy(gang.queue, pool) {
            continue;
        }
        for slot in 0..listed.offerings.len() {
            let offering = OfferingRef { pool, slot: slot as u16 };
            let in_time = listed.offerings[slot].spec.boot_time < gang.spec.provisioning.timeout;
            if in_time && members_per_node(cycle, offering, ask) > 0 {
                found.push(offering);
            }
        }
    }
    found
}

/// Whether there may be nodes of an offering: of one that is not listed any more there are none.
pub(crate) fn is_sold(world: &World, offering: OfferingRef) -> bool {
    world.offering(offering).spec.max != Some(0)
}

/// Members of a role that fit on one empty node of an offering.
pub(crate) fn members_per_node(cycle: &mut Cycle<'_>, offering: OfferingRef, ask: &Ask) -> u32 {
    let world = cycle.scratch.world;
    let listed = world.offering(offering);
    let state = cycle.scratch.intern(world.empty_state(listed.class));
    // Bars keep present nodes for gangs ahead; pools are barred apart, so bars are not checked here.
    let suits = cycle.fits.score(&cycle.scratch, ask.sig, listed.class, listed.leaf).is_some();
    if suits { world.signature(ask.sig).times_fits(cycle.scratch.state(state)) } else { 0 }
}

/// Until when an offering that failed lately is avoided.
pub(crate) fn avoided(cycle: &Cycle<'_>, offering: OfferingRef) -> Option<Time> {
    cycle.policy.avoided(cycle.scratch.world, cycle.now, offering)
}

/// The hardest role that lacks places, or the hardest of all when roles only compete.
fn pivot(cycle: &mut Cycle<'_>, asks: &[Ask]) -> usize {
    let mut lacks = |ask: &Ask| {
        let free = cycle.fits.in_domain(&cycle.scratch, ROOT, Want::any(ask.sig));
        free < u64::from(ask.count)
    };
    asks.iter().position(&mut lacks).unwrap_or(0)
}
