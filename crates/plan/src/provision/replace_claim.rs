//! Replace a failed claim of an order, where another node in its place is cheaper than rolling the order back.
//!
//! A rollback costs what all the other nodes of the order have cost so far and will cost idle, and another boot for
//! all of them. A replacement costs the others' waiting for it, and the odds that it fails as well. It must be of the
//! same kind, where the gang may run, and be there before the order's deadline; and claims of an order are replaced
//! only so often.

use muster_core::World;
use muster_core::gang::{Closeness, Gang};
use muster_core::id::{ClaimId, OfferingRef};
use muster_core::money::Money;
use muster_core::order::{Claim, ClaimFailure, ClaimState, Order, Place};
use muster_core::plan::Action;
use muster_core::time::{Span, Time};
use muster_core::topology::Level;

use super::draft::ready_in;
use super::stockout::stockout_odds;
use crate::cycle::can_be_promised;
use crate::policy::Policy;

/// The replacement for a failed claim of an order, if that is cheaper than rolling the order back.
pub(crate) fn replacement(
    world: &World,
    now: Time,
    policy: &Policy,
    order: &Order,
    lost: ClaimId,
) -> Option<Action> {
    let claim = world.claims().get(&lost)?;
    let gang = world.gang(order.spec.gang)?;
    if order.top_ups >= policy.top_ups || !world.is_sound_without(order, lost) {
        return None;
    }
    let (cost, claim, offering) = candidates(world, now, policy, order, lost, claim)
        .into_iter()
        .filter(|(_, _, at)| suits(world, gang, order, lost, *at))
        .filter(|(ready, ..)| now + *ready < order.spec.deadline)
        .map(|(ready, claim, offering)| {
            let new = Replacement { claim, offering, ready };
            (expected(world, now, order, lost, new), claim, offering)
        })
        .min()?;
    let order = order.spec.id;
    (cost <= Money::ZERO).then_some(Action::TopUp { order, lost, claim, offering })
}

/// The odds of a stock-out where nothing is known.
const USUAL: f64 = 0.1;

/// Possible replacements for a failed claim, and when each would be ready: a claim under way for no order, or a new
/// one. A stock-out is not answered by requesting the same again.
fn candidates(
    world: &World,
    now: Time,
    policy: &Policy,
    order: &Order,
    lost: ClaimId,
    failed: &Claim,
) -> Vec<(Span, ClaimId, OfferingRef)> {
    let class = world.offering(failed.offering).class;
    let same_kind = |offering: OfferingRef| world.offering(offering).class == class;
    let mut found: Vec<(Span, ClaimId, OfferingRef)> = world
        .claims()
        .iter()
        .filter(|(id, claim)| {
            **id != lost && can_be_promised(world, now, **id) && same_kind(claim.offering)
        })
        .map(|(id, claim)| (ready_in(world, now, claim), *id, claim.offering))
        .collect();
    let ran_out = failed.state == ClaimState::Failed(ClaimFailure::StockOut);
    let mut pools: Vec<_> = order.spec.claims.iter().map(|(_, offering)| offering.pool).collect();
    pools.sort_unstable();
    pools.dedup();
    for pool in pools {
        for slot in 0..world.pools()[pool].offerings.len() {
            let offering = OfferingRef { pool, slot: slot as u16 };
            let again = ran_out && offering == failed.offering;
            if !again
                && same_kind(offering)
                && world.pools()[pool].room(slot) > 0
                && policy.avoided(world, now, offering).is_none()
            {
                let boot = world.offering(offering).spec.boot_time;
                found.push((boot, world.next_claim(), offering));
            }
        }
    }
    found
}

/// Whether the members assigned to the lost node may run in the replacement's place, and stay as close together as
/// they must.
pub(crate) fn suits(
    world: &World,
    gang: &Gang,
    order: &Order,
    lost: ClaimId,
    at: OfferingRef,
) -> bool {
    let listed = world.offering(at);
    let topology = world.topology();
    let roles = order
        .spec
        .reservations
        .iter()
        .filter(|reservation| reservation.place == Place::Claim(lost))
        .map(|reservation| gang.sigs[usize::from(reservation.role)]);
    let mut roles: Vec<_> = roles.collect();
    roles.dedup();
    let may_run = roles.into_iter().all(|sig| {
        let shape = world.class(listed.class);
        world.signature(sig).score(shape, topology, listed.leaf, None).is_some()
    });
    let required = matches!(gang.spec.closeness, Some(Closeness::Required(_)));
    let near = match gang.level.filter(|_| required) {
        None | Some(Level::Node) => true,
        Some(Level::Domain(level)) => {
            let old = world.claims()[&lost].offering;
            let here = topology.around(world.offering(old).leaf, level);
            let there = topology.around(listed.leaf, level);
            here == there && here.is_some()
        }
    };
    may_run && near && world.may_buy(gang.queue, at.pool)
}

/// What could take a failed claim's place.
#[derive(Clone, Copy)]
struct Replacement {
    claim: ClaimId,
    offering: OfferingRef,
    ready: Span,
}

/// What a replacement is expected to cost more than a rollback; below zero if it is cheaper.
fn expected(world: &World, now: Time, order: &Order, lost: ClaimId, new: Replacement) -> Money {
    let Replacement { claim, offering, ready } = new;
    let price = |offering: OfferingRef| world.offering(offering).spec.price;
    let held = order.spec.claims.iter().fold(Money::ZERO, |sum, (_, at)| sum + price(*at));
    let boot = world.offering(offering).spec.boot_time;
    let idle_after = world.pools()[offering.pool].spec.idle_after;
    let mut coming = Span::ZERO;
    let mut up = Money::ZERO;
    let others = order.spec.claims.iter().filter(|(id, _)| *id != lost);
    for claim in others.filter_map(|(id, _)| world.claims().get(id)) {
        match claim.state {
            ClaimState::Ready(_) => up += price(claim.offering),
            _ => coming = coming.max(ready_in(world, now, claim)),
        }
    }
    let gang = world.gang(order.spec.gang).expect("it has an order");
    let waiting = gang.spec.cost_of_waiting.unwrap_or(held);
    // All nodes boot again, the gang waits for that, and nodes that are ready now stand idle until they are released.
    let give_up =
        held.per_hour_for(boot) + waiting.per_hour_for(boot) + up.per_hour_for(idle_after);
    let wait = ready.max(coming);
    let keep = held.per_hour_for(wait) + waiting.per_hour_for(wait);
    // A node that has been launched cannot be out of stock any more.
    let launched = world.claims().get(&claim).is_some_and(|claim| {
        matches!(claim.state, ClaimState::Launched | ClaimState::Registered(_))
    });
    // A new order meets the usual odds as well; only odds above them speak against a replacement.
    let odds = if launched { 0.0 } else { stockout_odds(world, now, offering) - USUAL };
    let fails = Money((give_up.0 as f64 * odds.max(0.0)) as i64);
    keep + fails - give_up
}
