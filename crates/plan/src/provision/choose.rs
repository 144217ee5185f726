//! Choose the cheapest way to start a gang that does not fit: wait, buy or preempt.
//!
//! The ways are compared in one sum: the cost of nodes, the loss of victims, and the cost of the gang's delay. A gang
//! that does not declare what an hour of delay costs is given nodes as soon as it lacks them; where victims could be
//! preempted, its delay counts as much as the GPUs it asks for. The time it has waited already counts as a cost of
//! waiting, so a start that is put off again and again is paid for in the end, and never with more than twice the
//! least.

use muster_core::gang::Gang;
use muster_core::id::GangId;
use muster_core::money::Money;
use muster_core::time::{Span, Time};
use muster_core::verdict::{Blocker, Considered, Way};

use super::order::{Blockers, Quote, quote};
use crate::backfill::Holes;
use crate::cycle::{Cycle, earliest};
use crate::order::{counts_on, latest_start};
use crate::preempt::{Reason, VictimSet, minimum_size};

/// What a gang that does not fit should do.
pub(crate) enum Choice {
    /// Wait, because buying or preempting costs more, or because preempting does and nodes cannot be bought.
    Wait(Blockers),
    /// Buy nodes.
    Buy,
    /// Buy nodes, if there were any to buy.
    CannotBuy(Blockers),
    /// Preempt other gangs.
    Preempt(VictimSet),
}

/// Whether buying nodes would help a gang to start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purchase {
    /// It lacks room.
    Helps,
    /// It lacks room under a limit: more nodes would stand idle.
    Useless,
}

/// Gangs that buy whatever it costs and whose wait is reported as well, in one cycle, at most. It decides nothing,
/// and takes as long as everything else that is decided about them.
const WAITS_REPORTED: u32 = 8;

/// A way, when the gang would start, and what that costs.
struct PricedWay {
    considered: Considered,
    start: Time,
}

/// Chooses among all ways there are, and returns what was compared.
pub(crate) fn choose<'w>(
    cycle: &mut Cycle<'w>,
    id: GangId,
    gang: &Gang,
    holes: &Holes<'w>,
    victims: Option<VictimSet>,
    purchase: Purchase,
) -> (Choice, Vec<Considered>) {
    let declared = gang.spec.cost_of_waiting;
    // Where the comparison is not reported, a gang that buys whatever it costs compares nothing.
    if declared.is_none() && victims.is_none() && !cycle.policy.explain {
        return (Choice::Buy, Vec::new());
    }
    let now = cycle.now;
    let quote = match purchase {
        Purchase::Helps => quote(cycle, gang),
        Purchase::Useless => Err(Blockers::default()),
    };
    let (quote, unsold) = match quote {
        Err(blockers) if victims.is_none() => return (Choice::CannotBuy(blockers), Vec::new()),
        Err(blockers) => (None, blockers.into_iter().find(Blocker::is_unoffered)),
        Ok(quote) => (Some(quote), None),
    };
    let price = gpu_hour(cycle);
    let reasons = victims.iter().flat_map(|victims| victims.reasons.iter().copied());
    let rate = rate(cycle, gang, price, reasons);
    // A gang without a declared cost of delay does not wait for others where nodes can be bought.
    let weighs_cost = declared.is_some() || quote.is_none();
    let reports = !weighs_cost
        && victims.is_none()
        && cycle.policy.explain
        && cycle.memo.waits_reported < WAITS_REPORTED;
    cycle.memo.waits_reported += u32::from(reports);
    let start =
        if weighs_cost || reports { holes.bookings.earliest(cycle, id, gang) } else { None };
    let mut ways: Vec<PricedWay> = Vec::new();
    let start = start.map(|booking| booking.start);
    if let Some(start) = start {
        ways.push(way(now, Way::Wait, start, rate.per_hour_for(start.since(gang.submitted))));
    }
    if let Some(Quote { nodes, boot }) = quote {
        ways.push(way(now, Way::Buy, now + boot, nodes + rate.per_hour_for(boot)));
    }
    if let Some(victims) = &victims {
        let lost = price.per_hour_for(Span(counted_loss(victims)));
        let cost = lost + rate.per_hour_for(victims.delay);
        let mut option = way(now, kind(victims), now + victims.delay, cost);
        option.considered.others = victims.preempts.len() as u32;
        option.considered.lost = Span(victims.lost);
        ways.push(option);
    }
    let reclaims = victims.as_ref().is_some_and(|victims| is_reclaim(cycle, gang, victims));
    let reported_only = usize::from(!weighs_cost && start.is_some());
    let best = reported_only + best(cycle, gang, &ways[reported_only..], victims.as_ref());
    ways[best].considered.chosen = true;
    let chosen = ways[best].considered.way;
    let choice = match (chosen, victims) {
        (Way::Wait, _) => {
            let others = ways.iter().filter(|other| other.considered.way != Way::Wait);
            let least = others.map(|other| other.considered.cost).min();
            wake_when_as_expensive(cycle, gang, rate, least);
            // Wake also when lent capacity must be back, whatever the borrowers' estimates say.
            let lender = &cycle.scratch.world.queue(gang.queue).spec;
            let back_by = gang.submitted + lender.reclaims_within();
            if reclaims && back_by >= cycle.now {
                cycle.wake = earliest(cycle.wake, Some(back_by + Span(1)));
            }
            let buy = ways.iter().find(|other| other.considered.way == Way::Buy);
            let cheaper = buy.map(|buy| Blocker::CheaperToWait {
                start: ways[best].start,
                wait: ways[best].considered.cost,
                buy: buy.considered.cost,
            });
            Choice::Wait(cheaper.or(unsold).into_iter().collect())
        }
        (Way::Buy, _) | (_, None) => Choice::Buy,
        (_, Some(victims)) => Choice::Preempt(victims),
    };
    (choice, ways.into_iter().map(|way| way.considered).collect())
}

fn way(now: Time, way: Way, start: Time, cost: Money) -> PricedWay {
    let delay = Some(start.since(now));
    let considered = Considered { way, delay, cost, others: 0, lost: Span::ZERO, chosen: false };
    PricedWay { considered, start }
}

/// Whether victims would give back what they have of the gang's guarantee. Seats they have grown onto were lent too,
/// whatever they declare that a pause costs them.
fn is_reclaim(cycle: &Cycle<'_>, gang: &Gang, victims: &VictimSet) -> bool {
    let world = cycle.scratch.world;
    let foreign = |id: GangId| world.gang(id).is_some_and(|other| other.queue != gang.queue);
    let shrinks =
        || victims.reasons.is_empty() && victims.preempts.iter().any(|way| foreign(way.gang));
    victims.reclaimable || (shrinks() && counts_on(&cycle.scratch, gang.queue, gang))
}

/// The cheapest of the ways that are in time; if none is, the cheapest of all, and where capacity was lent the
/// soonest.
fn best(cycle: &Cycle<'_>, gang: &Gang, ways: &[PricedWay], victims: Option<&VictimSet>) -> usize {
    let deadline = latest_start(gang);
    let lent = victims.is_some_and(|victims| is_reclaim(cycle, gang, victims));
    let lender = &cycle.scratch.world.queue(gang.queue).spec;
    let back_by = lent.then(|| gang.submitted + lender.reclaims_within());
    let late = |way: &PricedWay| {
        deadline.is_some_and(|latest| way.start > latest)
            || back_by.is_some_and(|by| way.start > by)
    };
    let key = |at: &usize| {
        let way = &ways[*at];
        let soonest = if late(way) && lent { way.start.0 } else { 0 };
        // Waiting relies on the borrowers' estimates; reclaimed capacity is sure to come.
        let unsure = late(way) && lent && way.considered.way == Way::Wait;
        (late(way), unsure, soonest, way.considered.cost, *at)
    };
    (0..ways.len()).min_by_key(key).expect("at least one way")
}

/// What victims lose, as far as it counts: the end of a time slice was known beforehand.
fn counted_loss(victims: &VictimSet) -> u64 {
    if victims.reasons == [Reason::TimeSlice] { 0 } else { victims.counted }
}

/// Whether starting soon is worth the loss of victims and the cost of nodes, rather than waiting until `start`.
pub(crate) fn is_worth(
    cycle: &mut Cycle<'_>,
    gang: &Gang,
    start: Time,
    lost: u64,
    reasons: impl Iterator<Item = Reason>,
    nodes: Money,
) -> bool {
    let price = gpu_hour(cycle);
    let reasons: Vec<Reason> = reasons.collect();
    let rate = rate(cycle, gang, price, reasons.iter().copied());
    // Lent capacity comes back in time, whatever loss the borrowers declare.
    let back_by = gang.submitted + cycle.scratch.world.queue(gang.queue).spec.reclaims_within();
    let is_owed = reasons.contains(&Reason::Reclaim) && start > back_by;
    let lost = if is_owed { Money::ZERO } else { price.per_hour_for(Span(lost)) };
    rate.per_hour_for(start.since(gang.submitted)) > nodes + lost
}

/// What an hour of delay costs.
fn rate(
    cycle: &Cycle<'_>,
    gang: &Gang,
    price: Money,
    mut reasons: impl Iterator<Item = Reason>,
) -> Money {
    let size = minimum_size(cycle.scratch.world, gang);
    let by_size = Money(price.0.saturating_mul(i64::try_from(size).unwrap_or(i64::MAX)) / 1_000);
    let own = gang.spec.cost_of_waiting.unwrap_or(by_size);
    let lower = reasons.any(|reason| reason == Reason::Priority);
    Money(own.0.saturating_mul(if lower { i64::from(cycle.policy.urgency.max(1)) } else { 1 }))
}

/// What a GPU costs for an hour: the mean of what pools offer, or one where there are no offers.
fn gpu_hour(cycle: &mut Cycle<'_>) -> Money {
    if let Some(price) = cycle.memo.gpu_hour {
        return price;
    }
    let world = cycle.scratch.world;
    let offerings = world.pools().values().flat_map(|pool| &pool.offerings);
    let prices: Vec<i64> = offerings
        .filter(|offering| offering.spec.gpus > 0)
        .map(|offering| offering.spec.price.0 / i64::from(offering.spec.gpus))
        .collect();
    let price = match prices.len() as i64 {
        0 => Money::from_units(1.0).expect("one"),
        count => Money((prices.iter().sum::<i64>() / count).max(1)),
    };
    cycle.memo.gpu_hour = Some(price);
    price
}

/// Wakes the planner when waiting has become as expensive as the cheapest other way.
fn wake_when_as_expensive(cycle: &mut Cycle<'_>, gang: &Gang, rate: Money, other: Option<Money>) {
    let Some(other) = other.filter(|_| rate.0 > 0) else { return };
    let hours = other.0 as f64 / rate.0 as f64;
    let at = gang.submitted + Span::from_secs_f64(hours * 3_600.0);
    if at > cycle.now {
        cycle.wake = earliest(cycle.wake, Some(at));
    }
}

fn kind(victims: &VictimSet) -> Way {
    match victims.reasons.last() {
        None => Way::Shrink,
        Some(Reason::Reclaim) => Way::Reclaim,
        Some(Reason::TimeSlice) => Way::Rotate,
        Some(Reason::Priority) => Way::Preempt,
        Some(Reason::Move) => Way::Move,
    }
}
