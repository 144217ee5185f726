//! Serve one gang: place it, or start it in the cheapest way there is, or say why it waits.

use muster_core::gang::Gang;
use muster_core::id::GangId;
use muster_core::order::OrderSpec;
use muster_core::plan::{Action, ActionGroup, Plan};
use muster_core::verdict::{Blocker, Considered, Verdict};
use smallvec::SmallVec;

use crate::backfill::Holes;
use crate::choose::{Choice, choose};
use crate::cycle::{Cycle, earliest};
use crate::make_way::{self, Offer};
use crate::oversize::is_wasteful;
use crate::place::Misfit;
use crate::policy::Behind;
use crate::provision::{Blockers, may_order, provision, provision_new};
use crate::{explain, quota};

/// Starts one gang in the cheapest way there is, or says why it waits.
pub(crate) fn serve_one<'w>(
    cycle: &mut Cycle<'w>,
    id: GangId,
    gang: &Gang,
    holes: &mut Holes<'w>,
    plan: &mut Plan,
) -> Verdict {
    if let Some(ahead) = cycle.barred_by(gang) {
        return waiting([Blocker::Behind(ahead)]);
    }
    if let Some(over) = quota::over_limit(&cycle.scratch, gang) {
        if quota::exceeds_alone(&over) {
            return Verdict::Impossible { blockers: SmallVec::from_elem(over, 1) };
        }
        // Those of its own that count for the same limit may make way.
        if let Some(offer) = cycle.look_for_others(id, gang, holes).ok().flatten() {
            let (choice, ways) = choose(cycle, id, gang, holes, Some(offer));
            if let Choice::MakeWay(offer) = choice {
                return make_way(cycle, id, gang, &offer, ways, holes, plan);
            }
        }
        cycle.bar_queue(id, gang, &over);
        return waiting([over]);
    }
    // Nodes of the right size are ordered instead, unless there are none: then what is there has to do.
    if may_order(cycle.scratch.world, gang)
        && is_wasteful(cycle, gang)
        && let Ok(spec) = holes.provide(cycle, |cycle| provision_new(cycle, id, gang), gang)
    {
        return order(cycle, id, gang, spec, plan);
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
    let (offer, spent) = match cycle.look_for_others(id, gang, holes) {
        Ok(offer) => (offer.filter(|_| !booked), false),
        Err(SearchSpent) => (None, true),
    };
    let (choice, ways) = choose(cycle, id, gang, holes, offer);
    let provided = match choice {
        Choice::MakeWay(offer) => return make_way(cycle, id, gang, &offer, ways, holes, plan),
        Choice::Wait(blocker) => Err(blocker.into_iter().collect()),
        Choice::Buy if !may_order(cycle.scratch.world, gang) => {
            Err(SmallVec::from_elem(Blocker::ProvisioningOff, 1))
        }
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
        Ok(spec) => order(cycle, id, gang, spec, plan),
        Err(mut blockers) => match misfit {
            Some(misfit) => {
                blockers.extend(spent.then_some(Blocker::SearchSpent));
                refuse(cycle, id, gang, misfit, blockers)
            }
            None => waiting([Blocker::Behind(holes.ahead().expect("it would delay somebody"))]),
        },
    };
    if let Verdict::Waiting { ways: told, .. } | Verdict::Provisioning { ways: told, .. } =
        &mut verdict
    {
        *told = ways;
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
    make_way::buy_beside(cycle, id, &[], waits_until)
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
    let (spec, told) = make_way::take(cycle, id, offer);
    holes.sit_over(cycle, gang, &offer.seats);
    quota::charge(&mut cycle.scratch, gang);
    let (order, deadline, leaving) = (spec.id, spec.deadline, spec.after.len() as u32);
    cycle.wake = earliest(cycle.wake, Some(deadline));
    let actions = std::iter::once(Action::Order(spec)).chain(told).collect();
    plan.groups.push(ActionGroup { gang: Some(id), actions });
    Verdict::Provisioning { order, ready: 0, total: 0, leaving, deadline, ways }
}

/// Others were looked for on behalf of too many in this cycle.
pub(crate) struct SearchSpent;

/// Places an order that was drawn up.
fn order(
    cycle: &mut Cycle<'_>,
    id: GangId,
    gang: &Gang,
    spec: OrderSpec,
    plan: &mut Plan,
) -> Verdict {
    quota::charge(&mut cycle.scratch, gang);
    let (order, total, deadline) = (spec.id, spec.claims.len() as u32, spec.deadline);
    let after = spec.after.len() as u32;
    cycle.wake = earliest(cycle.wake, Some(deadline));
    plan.groups.push(ActionGroup { gang: Some(id), actions: vec![Action::Order(spec)] });
    let (leaving, ways) = (after, Vec::new());
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
    if let Some(why) = explain::impossible(cycle, gang) {
        let mut all: Blockers = SmallVec::from_elem(why, 1);
        all.extend(explain::beyond_budget(cycle, gang));
        return Verdict::Impossible { blockers: all };
    }
    if blockers.iter().any(|blocker| matches!(blocker, Blocker::PoolsFull { .. })) {
        cycle.cramp(gang);
    }
    let behind = cycle.ahead.first().map(|ahead| Blocker::Behind(*ahead));
    if cycle.policy.order.discipline().behind() == Behind::Barred {
        cycle.bar(id, gang);
    }
    let mut all: Blockers = SmallVec::from_elem(explain::blocker(misfit), 1);
    all.extend(blockers);
    all.extend(behind);
    Verdict::Waiting { position: 0, blockers: all, start: None, late: None, ways: Vec::new() }
}

pub(crate) fn waiting(blockers: [Blocker; 1]) -> Verdict {
    let blockers = SmallVec::from(blockers);
    Verdict::Waiting { position: 0, blockers, start: None, late: None, ways: Vec::new() }
}
