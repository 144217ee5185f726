//! Buy some nodes and preempt for the rest, where neither is enough alone.
//!
//! Everything that can be bought is bought first, so that there are as few victims as possible, and they are told
//! only when all of the new nodes are ready: no gang is stopped for an order that fails.

use muster_core::gang::{Gang, Seat};
use muster_core::id::{GangId, NodeIdx};
use muster_core::money::Money;
use muster_core::order::{OrderSpec, Place, VictimSeats};
use muster_core::state::NodeState;
use muster_core::time::{Span, Time};

use muster_core::topology::ROOT;

use super::candidates::{Candidate, shrinkable, to_stop_or_shrink};
use super::evict::{SLACK, note_victims};
use super::search::{Search, SearchBounds};
use crate::cycle::Cycle;
use crate::order::quota;
use crate::place::{Ask, asks};
use crate::provision::{Blockers, is_worth, members_per_node, offerings_for, provision};

/// Draws up an order for what can be bought, beside the seats of victims; holds all of it in the scratch.
pub(crate) fn buy_and_preempt(
    cycle: &mut Cycle<'_>,
    id: GangId,
    booked: &[NodeIdx],
    waits_until: Option<Time>,
) -> Option<OrderSpec> {
    let gang = cycle.scratch.world.gang(id).expect("it waits");
    let surplus = shrinkable(cycle, gang, booked);
    let surplus = Some(surplus).filter(|surplus| !surplus.is_empty());
    let mut ways: Vec<Vec<Candidate<'_>>> = surplus.into_iter().collect();
    ways.extend(to_stop_or_shrink(cycle, gang, booked));
    if ways.is_empty() {
        return None;
    }
    let ask = asks(&cycle.scratch, gang)[0];
    let (bought, price) = buyable(cycle, gang, &ask);
    let count = ask.count.checked_sub(bought).filter(|count| *count > 0)?;
    let found = ways.iter().find_map(|candidates| {
        let chosen = enough_for(cycle, (id, gang), candidates, &Ask { count, ..ask })?;
        Some((candidates, chosen))
    });
    let (candidates, chosen) = found?;
    let leaving: Vec<&Candidate<'_>> = chosen.iter().map(|at| &candidates[*at]).collect();
    let lost = leaving.iter().map(|candidate| candidate.counted).sum();
    let reasons = leaving.iter().filter_map(|candidate| candidate.reason);
    let spends = price.per_hour_for(gang.estimated_run_time());
    if waits_until.is_some_and(|start| !is_worth(cycle, gang, start, lost, reasons, spends)) {
        return None;
    }
    let before = rise(cycle, &leaving);
    let drawn: Result<OrderSpec, Blockers> = provision(cycle, id, gang);
    let ways = drawn.is_ok().then(|| spare_unneeded(cycle, id, &leaving));
    // The victims are still there: of what is free now only what they leave over stays free.
    let seats = drawn.as_ref().map_or_else(|_| Vec::new(), here);
    for candidate in &leaving {
        quota::charge_seats(&mut cycle.scratch, candidate.gang, &candidate.seats);
    }
    for (node, state) in before {
        cycle.scratch.set_node_state(node, state);
        let on_it: Vec<Seat> = seats.iter().copied().filter(|seat| seat.node == node).collect();
        cycle.scratch.sit_over(gang, &on_it);
    }
    let (mut spec, ways) = (drawn.ok()?, ways?);
    let grace = |way: &VictimSeats| {
        cycle.scratch.world.gang(way.gang).map_or(Span::ZERO, |other| other.spec.disruption.grace)
    };
    let longest = ways.iter().map(grace).max().unwrap_or_default();
    spec.deadline = spec.deadline + longest + SLACK;
    note_victims(cycle, &ways);
    spec.after = ways;
    Some(spec)
}

/// The victims with which so many members fit beside what is bought.
fn enough_for<'w>(
    cycle: &mut Cycle<'w>,
    waiting: (GangId, &'w Gang),
    candidates: &[Candidate<'w>],
    ask: &Ask,
) -> Option<Vec<usize>> {
    let evictions = cycle.eviction_budgets();
    let bounds = SearchBounds {
        evictions: &evictions,
        leaving: &cycle.given.leaving,
        truncated: &cycle.searches.truncated,
    };
    let mut trial = cycle.scratch.trial();
    Search::new(&mut trial, &mut cycle.fits, waiting, candidates, bounds, ROOT).find_for(ask)
}

/// Members of a role that all there is to buy would hold, at most, and what that costs an hour.
fn buyable(cycle: &mut Cycle<'_>, gang: &Gang, ask: &Ask) -> (u32, Money) {
    let (mut members, mut price) = (0u32, Money::ZERO);
    for offering in offerings_for(cycle, gang, ask) {
        let each = members_per_node(cycle, offering, ask).max(1);
        let lacking = ask.count.saturating_sub(members).div_ceil(each);
        let nodes = cycle.scratch.room(offering).min(lacking);
        let hourly = cycle.scratch.world.offering(offering).spec.marginal_price();
        price += Money(hourly.0.saturating_mul(i64::from(nodes)));
        members = members.saturating_add(each.saturating_mul(nodes));
    }
    (members, price)
}

/// Frees the seats of candidates in the cycle's own scratch; returns what was free before on their nodes.
fn rise(cycle: &mut Cycle<'_>, leaving: &[&Candidate<'_>]) -> Vec<(NodeIdx, NodeState)> {
    let mut nodes: Vec<NodeIdx> =
        leaving.iter().flat_map(|c| &c.seats).map(|seat| seat.node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let state = |node: NodeIdx| Some((node, cycle.scratch.node_state(node)?));
    let before = nodes.into_iter().filter_map(state).collect();
    for candidate in leaving {
        cycle.scratch.rise(candidate.gang, &candidate.seats);
        quota::refund_seats(&mut cycle.scratch, candidate.gang, &candidate.seats);
    }
    before
}

/// The victims that have to leave after all, beside what the order took.
fn spare_unneeded(
    cycle: &mut Cycle<'_>,
    id: GangId,
    leaving: &[&Candidate<'_>],
) -> Vec<VictimSeats> {
    let world = cycle.scratch.world;
    let mut ways = Vec::new();
    for candidate in leaving {
        let free = |seat: &Seat| {
            let signature = world.signature(candidate.gang.sigs[usize::from(seat.role)]);
            cycle.scratch.node_state(seat.node).is_some_and(|s| s.has_free(signature, seat))
        };
        if candidate.seats.iter().all(free) {
            cycle.scratch.sit(candidate.gang, &candidate.seats);
            continue;
        }
        let stop = candidate.reason.map(|reason| reason.stop_reason(id));
        ways.push(VictimSeats { gang: candidate.id, seats: candidate.seats.clone(), stop });
    }
    ways
}

/// Seats of an order on nodes that are here.
fn here(spec: &OrderSpec) -> Vec<Seat> {
    let on_node = spec.reservations.iter().filter_map(|reservation| match reservation.place {
        Place::Node(node) => {
            let muster_core::order::Reservation { devices, role, members, .. } = *reservation;
            Some(Seat { devices, node, role, members })
        }
        Place::Claim(_) => None,
    });
    on_node.collect()
}
