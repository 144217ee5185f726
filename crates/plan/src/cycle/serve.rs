//! Serve one gang: place it, or start it in the cheapest way there is, or say why it waits.

use muster_core::gang::Gang;
use muster_core::id::GangId;
use muster_core::order::OrderSpec;
use muster_core::plan::{Action, ActionGroup, Plan};
use muster_core::verdict::{Blocker, Considered, Verdict};
use smallvec::SmallVec;

use super::state::{Cycle, earliest};
use crate::backfill::Holes;
use crate::explain::verdicts;
use crate::order::{allowed, quota};
use crate::place::Misfit;
use crate::policy::Overtaking;
use crate::preempt::{self, MaySearch, VictimSet};
use crate::provision::{
    Blockers, Choice, Purchase, choose, is_oversized, may_order, provision, provision_new,
};

/// Starts one gang in the cheapest way there is, or says why it waits.
pub(super) fn serve_gang<'w>(
    cycle: &mut Cycle<'w>,
    id: GangId,
    gang: &Gang,
    holes: &mut Holes<'w>,
    plan: &mut Plan,
) -> Verdict {
    if let Some(queue) = cycle.closed_to(gang) {
        return waiting([Blocker::QueueClosed { queue }]);
    }
    if let Some(refused) = allowed::refused(cycle, gang) {
        return refused;
    }
    if let Some(ahead) = cycle.barred_by(gang) {
        // A gang that can never run is reported as such, wherever it is in the queue.
        let why = if cycle.policy.explain { verdicts::infeasible(cycle, gang) } else { None };
        return match why {
            // Nodes alone would not help it: the limit would still be there.
            Some(why) => Verdict::Impossible {
                blockers: SmallVec::from([why, Blocker::Behind(ahead)].as_slice()),
            },
            None => waiting([Blocker::Behind(ahead)]),
        };
    }
    if let Some(over) = quota::over_limit(&cycle.scratch, gang) {
        if quota::exceeds_alone(&over) {
            return Verdict::Impossible { blockers: SmallVec::from_elem(over, 1) };
        }
        return serve_at_limit(cycle, id, gang, over, holes, plan);
    }
    // Nodes of the right size are ordered instead, unless none can be had: then the free ones are used.
    if may_order(cycle.scratch.world, gang)
        && is_oversized(cycle, gang)
        && let Ok(spec) = holes.provide(cycle, |cycle| provision_new(cycle, id, gang), gang)
    {
        return order(cycle, id, gang, spec, Vec::new(), plan);
    }
    let misfit = match holes.place(cycle, gang) {
        Ok(seats) => {
            quota::charge(&mut cycle.scratch, gang);
            cycle.given.admitted.push((id, seats.clone()));
            let actions = vec![Action::Admit { gang: id, seats }];
            plan.groups.push(ActionGroup { gang: Some(id), actions });
            return Verdict::Admitted;
        }
        Err(misfit) => misfit,
    };
    let booked = holes.is_quota_booked(gang, holes.len());
    let VictimSearch { victims, truncated } = find_victims(cycle, id, gang, holes);
    let victims = victims.filter(|_| !booked);
    let (choice, ways) = choose(cycle, id, gang, holes, victims, Purchase::Helps);
    let provided = match choice {
        Choice::Preempt(victims) => {
            return start_by_preempting(cycle, id, gang, &victims, ways, holes, plan);
        }
        Choice::Wait(blockers) => Err(blockers),
        Choice::CannotBuy(blockers) => Err(blockers),
        Choice::Buy if booked => Err(holes.ahead().map(Blocker::Behind).into_iter().collect()),
        Choice::Buy => holes.provide(cycle, |cycle| provision(cycle, id, gang), gang),
    };
    let provided = match provided {
        // Where neither buying nor preempting is enough, both together may be.
        Err(blockers) if is_too_small(&blockers) && misfit.is_some() => {
            buy_and_preempt(cycle, id, gang, holes).ok_or(blockers)
        }
        provided => provided,
    };
    let mut verdict = match provided {
        Ok(spec) => return order(cycle, id, gang, spec, ways, plan),
        Err(mut blockers) => match misfit {
            Some(misfit) => {
                blockers.extend(truncated.then_some(Blocker::SearchSpent));
                refuse(cycle, id, gang, misfit, blockers)
            }
            None => {
                waiting([Blocker::Behind(holes.ahead().expect("it would delay a booked gang"))])
            }
        },
    };
    if let Verdict::Waiting { ways: compared, .. } = &mut verdict {
        *compared = ways;
    }
    verdict
}

/// Serves a gang for which a limit leaves no room: gangs that count for the same limit may be preempted. More nodes
/// would not help.
fn serve_at_limit<'w>(
    cycle: &mut Cycle<'w>,
    id: GangId,
    gang: &Gang,
    over: Blocker,
    holes: &mut Holes<'w>,
    plan: &mut Plan,
) -> Verdict {
    let VictimSearch { victims, truncated } = find_victims(cycle, id, gang, holes);
    let mut compared = Vec::new();
    if victims.is_some() {
        let (choice, ways) = choose(cycle, id, gang, holes, victims, Purchase::Useless);
        if let Choice::Preempt(victims) = choice {
            return start_by_preempting(cycle, id, gang, &victims, ways, holes, plan);
        }
        compared = ways;
    }
    cycle.bar_queue(id, gang, &over);
    let mut verdict = waiting([over]);
    if let Verdict::Waiting { blockers, ways, .. } = &mut verdict {
        blockers.extend(truncated.then_some(Blocker::SearchSpent));
        *ways = compared;
    }
    verdict
}

/// Whether a gang cannot be provided for because pools are at their limits.
fn is_too_small(blockers: &[Blocker]) -> bool {
    blockers.iter().any(|blocker| matches!(blocker, Blocker::PoolsFull { .. }))
}

/// Buys what can be bought and preempts for the rest, if no gang is booked and waiting is not cheaper.
fn buy_and_preempt<'w>(
    cycle: &mut Cycle<'w>,
    id: GangId,
    gang: &Gang,
    holes: &Holes<'w>,
) -> Option<OrderSpec> {
    let world = cycle.scratch.world;
    if !world.has_possible_victims()
        || !holes.is_empty()
        || quota::over_limit(&cycle.scratch, gang).is_some()
    {
        return None;
    }
    let waits_until = holes.bookings.earliest(cycle, id, gang).map(|booking| booking.start);
    preempt::buy_and_preempt(cycle, id, &[], waits_until)
}

/// Preempts victims for a gang: an order holds its seats from now on.
fn start_by_preempting<'w>(
    cycle: &mut Cycle<'w>,
    id: GangId,
    gang: &Gang,
    victims: &VictimSet,
    ways: Vec<Considered>,
    holes: &mut Holes<'w>,
    plan: &mut Plan,
) -> Verdict {
    let (mut spec, evictions) = preempt::hold_and_evict(cycle, id, victims);
    spec.ways.clone_from(&ways);
    holes.sit_over(cycle, gang, &victims.seats);
    quota::charge(&mut cycle.scratch, gang);
    let (order, deadline, leaving) = (spec.id, spec.deadline, spec.after.len() as u32);
    cycle.wake = earliest(cycle.wake, Some(deadline));
    let actions = std::iter::once(Action::Order(spec)).chain(evictions).collect();
    plan.groups.push(ActionGroup { gang: Some(id), actions });
    Verdict::Provisioning { order, ready: 0, total: 0, leaving, deadline, ways }
}

/// What a search for victims came to.
struct VictimSearch {
    victims: Option<VictimSet>,
    /// No victims were found, and not every candidate was looked at.
    truncated: bool,
}

/// Searches for victims, if any gang can be disrupted and the cycle's budget of searches allows it.
fn find_victims<'w>(
    cycle: &mut Cycle<'w>,
    id: GangId,
    gang: &Gang,
    holes: &mut Holes<'w>,
) -> VictimSearch {
    if !cycle.scratch.world.has_possible_victims() {
        return VictimSearch { victims: None, truncated: false };
    }
    if let MaySearch::No { truncated } = cycle.may_search(gang) {
        return VictimSearch { victims: None, truncated };
    }
    cycle.searches.truncated.set(false);
    let victims = holes.find_victims(cycle, id);
    let truncated = victims.is_none() && cycle.searches.truncated.get();
    if victims.is_none() {
        cycle.note_failed_search(gang, truncated);
    }
    VictimSearch { victims, truncated }
}

/// Places an order that was drawn up.
fn order(
    cycle: &mut Cycle<'_>,
    id: GangId,
    gang: &Gang,
    mut spec: OrderSpec,
    ways: Vec<Considered>,
    plan: &mut Plan,
) -> Verdict {
    quota::charge(&mut cycle.scratch, gang);
    let (order, total, deadline) = (spec.id, spec.claims.len() as u32, spec.deadline);
    let leaving = spec.after.len() as u32;
    cycle.wake = earliest(cycle.wake, Some(deadline));
    spec.ways.clone_from(&ways);
    plan.groups.push(ActionGroup { gang: Some(id), actions: vec![Action::Order(spec)] });
    Verdict::Provisioning { order, ready: 0, total, leaving, deadline, ways }
}

/// A gang that neither fits nor can be provided for: it waits, unless it could never run.
fn refuse(
    cycle: &mut Cycle<'_>,
    id: GangId,
    gang: &Gang,
    misfit: Misfit,
    blockers: Blockers,
) -> Verdict {
    if let Some(why) = verdicts::infeasible(cycle, gang) {
        let mut all: Blockers = SmallVec::from_elem(why, 1);
        all.extend(verdicts::beyond_budget(cycle, gang));
        return Verdict::Impossible { blockers: all };
    }
    if blockers.iter().any(|blocker| matches!(blocker, Blocker::PoolsFull { .. })) {
        cycle.mark_contended(gang);
    }
    let behind = cycle.limits.ahead.first().map(|ahead| Blocker::Behind(*ahead));
    if cycle.policy.order.discipline().overtaking() == Overtaking::Barred {
        cycle.bar(id, gang);
    }
    let mut all: Blockers = SmallVec::from_elem(verdicts::blocker(misfit), 1);
    all.extend(blockers);
    all.extend(behind);
    Verdict::Waiting { position: 0, blockers: all, start: None, late: None, ways: Vec::new() }
}

pub(crate) fn waiting(blockers: [Blocker; 1]) -> Verdict {
    let blockers = SmallVec::from(blockers);
    Verdict::Waiting { position: 0, blockers, start: None, late: None, ways: Vec::new() }
}
