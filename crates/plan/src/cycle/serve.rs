//! Serve one gang: place it, or start it in the cheapest way there is, or say why it waits.

use muster_core::gang::Gang;
use muster_core::id::GangId;
use muster_core::order::OrderSpec;
use muster_core::plan::{Action, ActionGroup, Plan};
use muster_core::verdict::{Blocker, Considered, Verdict};
use smallvec::SmallVec;

use super::steps::{Cycle, earliest};
use crate::backfill::Holes;
use crate::explain::verdicts;
use crate::order::{allowed, quota};
use crate::place::Misfit;
use crate::policy::Behind;
use crate::preempt::{self, Offer};
use crate::provision::{
    Blockers, Choice, Nodes, choose, is_wasteful, may_order, provision, provision_new,
};

/// Starts one gang in the cheapest way there is, or says why it waits.
pub(crate) fn serve_one<'w>(
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
        // Who can never run is told so wherever it stands.
        let why = if cycle.policy.explain { verdicts::impossible(cycle, gang) } else { None };
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
        return serve_under_limit(cycle, id, gang, over, holes, plan);
    }
    // Nodes of the right size are ordered instead, unless there are none: then what is there has to do.
    if may_order(cycle.scratch.world, gang)
        && is_wasteful(cycle, gang)
        && let Ok(spec) = holes.provide(cycle, |cycle| provision_new(cycle, id, gang), gang)
    {
        return order(cycle, id, gang, spec, Vec::new(), plan);
    }
    let misfit = match holes.place(cycle, gang) {
        Ok(seats) => {
            quota::charge(&mut cycle.scratch, gang);
            cycle.admitted.push((id, seats.clone()));
            let actions = vec![Action::Admit { gang: id, seats }];
            plan.groups.push(ActionGroup { gang: Some(id), actions });
            return Verdict::Admitted;
        }
        Err(misfit) => misfit,
    };
    let booked = holes.is_quota_booked(gang, holes.len());
    let Looked { offer, spent } = cycle.look_for_others(id, gang, holes);
    let offer = offer.filter(|_| !booked);
    let (choice, ways) = choose(cycle, id, gang, holes, offer, Nodes::Help);
    let provided = match choice {
        Choice::MakeWay(offer) => return make_way(cycle, id, gang, &offer, ways, holes, plan),
        Choice::Wait(blockers) => Err(blockers),
        Choice::CannotBuy(blockers) => Err(blockers),
        Choice::Buy if booked => Err(holes.ahead().map(Blocker::Behind).into_iter().collect()),
        Choice::Buy => holes.provide(cycle, |cycle| provision(cycle, id, gang), gang),
    };
    let provided = match provided {
        // Where neither what can be bought nor what others could leave is enough, both together may be.
        Err(blockers) if is_too_small(&blockers) && misfit.is_some() => {
            buy_beside(cycle, id, gang, holes).ok_or(blockers)
        }
        provided => provided,
    };
    let mut verdict = match provided {
        Ok(spec) => return order(cycle, id, gang, spec, ways, plan),
        Err(mut blockers) => match misfit {
            Some(misfit) => {
                blockers.extend(spent.then_some(Blocker::SearchSpent));
                refuse(cycle, id, gang, misfit, blockers)
            }
            None => waiting([Blocker::Behind(holes.ahead().expect("it would delay somebody"))]),
        },
    };
    if let Verdict::Waiting { ways: told, .. } = &mut verdict {
        *told = ways;
    }
    verdict
}

/// A gang for which a limit leaves no room: those of its own that count for the same limit may make way. Nodes would not
/// help it.
fn serve_under_limit<'w>(
    cycle: &mut Cycle<'w>,
    id: GangId,
    gang: &Gang,
    over: Blocker,
    holes: &mut Holes<'w>,
    plan: &mut Plan,
) -> Verdict {
    let Looked { offer, spent } = cycle.look_for_others(id, gang, holes);
    let mut compared = Vec::new();
    if offer.is_some() {
        let (choice, ways) = choose(cycle, id, gang, holes, offer, Nodes::AreInVain);
        if let Choice::MakeWay(offer) = choice {
            return make_way(cycle, id, gang, &offer, ways, holes, plan);
        }
        compared = ways;
    }
    cycle.bar_queue(id, gang, &over);
    let mut verdict = waiting([over]);
    if let Verdict::Waiting { blockers, ways, .. } = &mut verdict {
        blockers.extend(spent.then_some(Blocker::SearchSpent));
        *ways = compared;
    }
    verdict
}

/// Whether it is the size of pools that keeps a gang from being provided for.
fn is_too_small(blockers: &[Blocker]) -> bool {
    blockers.iter().any(|blocker| matches!(blocker, Blocker::PoolsFull { .. }))
}

/// Buys what can be bought and has others make way for the rest, if nobody is booked and waiting is not cheaper.
fn buy_beside<'w>(
    cycle: &mut Cycle<'w>,
    id: GangId,
    gang: &Gang,
    holes: &Holes<'w>,
) -> Option<OrderSpec> {
    let world = cycle.scratch.world;
    if !world.has_disruptable()
        || !holes.is_empty()
        || quota::over_limit(&cycle.scratch, gang).is_some()
    {
        return None;
    }
    let waits_until = holes.bookings.earliest(cycle, id, gang).map(|booking| booking.start);
    preempt::buy_beside(cycle, id, &[], waits_until)
}

/// Has others make way for a gang: what it is to have is held by an order from now on.
fn make_way<'w>(
    cycle: &mut Cycle<'w>,
    id: GangId,
    gang: &Gang,
    offer: &Offer,
    ways: Vec<Considered>,
    holes: &mut Holes<'w>,
    plan: &mut Plan,
) -> Verdict {
    let (mut spec, told) = preempt::take(cycle, id, offer);
    spec.ways.clone_from(&ways);
    holes.sit_over(cycle, gang, &offer.seats);
    quota::charge(&mut cycle.scratch, gang);
    let (order, deadline, leaving) = (spec.id, spec.deadline, spec.after.len() as u32);
    cycle.wake = earliest(cycle.wake, Some(deadline));
    let actions = std::iter::once(Action::Order(spec)).chain(told).collect();
    plan.groups.push(ActionGroup { gang: Some(id), actions });
    Verdict::Provisioning { order, ready: 0, total: 0, leaving, deadline, ways }
}

/// What looking for others came to.
pub(crate) struct Looked {
    /// Who would make way.
    pub(crate) offer: Option<Offer>,
    /// Nobody was found, and not everything was looked at.
    pub(crate) spent: bool,
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
    if let Some(why) = verdicts::impossible(cycle, gang) {
        let mut all: Blockers = SmallVec::from_elem(why, 1);
        all.extend(verdicts::beyond_budget(cycle, gang));
        return Verdict::Impossible { blockers: all };
    }
    if blockers.iter().any(|blocker| matches!(blocker, Blocker::PoolsFull { .. })) {
        cycle.cramp(gang);
    }
    let behind = cycle.ahead.first().map(|ahead| Blocker::Behind(*ahead));
    if cycle.policy.order.discipline().behind() == Behind::Barred {
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
