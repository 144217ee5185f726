//! Resize elastic gangs that can use what is left.
//!
//! No gang that holds a start time is delayed, and nodes that cost money are neither bought nor kept for growth,
//! unless their pool says so.

use muster_core::World;
use muster_core::order::ClaimState;
use muster_core::plan::{Action, ActionGroup, Plan};

use super::candidates::{GrowthCandidate, growable};
use super::distribute::distribute;
use crate::backfill::Holes;
use crate::cycle::Cycle;
use crate::order::quota;
use crate::place::Fits;
use crate::scratch::Scratch;

/// How often room is distributed anew because some gangs got too little of it to be of use.
const ROUNDS: u32 = 4;

/// Gives what is left to gangs that can use it.
pub(crate) fn grow<'w>(cycle: &mut Cycle<'w>, holes: &mut Holes<'w>, plan: &mut Plan) {
    let world = cycle.scratch.world;
    if !world.has_possible_victims() && !world.gangs().any(|(_, gang)| gang.is_short()) {
        return;
    }
    let mut growing = growable(cycle);
    if growing.is_empty() {
        return;
    }
    let (mut free, mut fits) = match holes.beside_bookings(cycle) {
        Some(beside) => beside,
        None => (cycle.scratch.later(), std::mem::take(&mut cycle.fits)),
    };
    close_paid_nodes(cycle.scratch.world, &mut free);
    // The overlay of what is free throughout says nothing about usage under limits now.
    let mut books = cycle.scratch.later();
    for _ in 0..ROUNDS {
        distribute(&mut free, &mut books, &mut fits, &mut growing);
        let useless = growing.iter_mut().filter(|one| !one.pays());
        if useless.map(|one| one.give_back(&mut free, &mut books)).count() == 0 {
            break;
        }
    }
    // The counts belong to another scratch.
    cycle.fits = Fits::default();
    for one in growing.into_iter().filter(|one| !one.added.is_empty() && one.pays()) {
        cycle.scratch.sit(one.gang, &one.added);
        quota::charge_seats(&mut cycle.scratch, one.gang, &one.added);
        cycle.given.grown.insert(one.id, one.added.clone());
        record(one, plan);
    }
}

/// A gang that runs is resized; one that starts does so with more members, and after all others: it may have grown
/// into nodes that an order gives back.
fn record(one: GrowthCandidate<'_>, plan: &mut Plan) {
    if !one.starts {
        let mut seats = one.gang.seats.clone();
        seats.extend(one.added);
        let actions = vec![Action::Resize { gang: one.id, seats }];
        plan.groups.push(ActionGroup { gang: Some(one.id), actions });
        return;
    }
    let admits = |action: &mut Action| match action {
        Action::Admit { gang, seats } if *gang == one.id => {
            seats.extend(&one.added);
            seats.sort_by_key(|seat| seat.role);
            true
        }
        _ => false,
    };
    let mut groups = plan.groups.iter_mut();
    if let Some(at) = groups.position(|group| group.actions.iter_mut().any(admits)) {
        let group = plan.groups.remove(at);
        plan.groups.push(group);
    }
}

/// Nodes that cost money are not kept for growth, unless their pool says so.
fn close_paid_nodes(world: &World, free: &mut Scratch<'_>) {
    for claim in world.claims().values() {
        let ClaimState::Ready(node) = claim.state else { continue };
        let pool = &world.pools()[claim.offering.pool].spec;
        let costs = world.offering(claim.offering).spec.marginal_price().0 > 0;
        if costs && !pool.grow {
            free.close(node);
        }
    }
}
