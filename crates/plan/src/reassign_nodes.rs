//! Reassign nodes between orders: start gangs early on free nodes, exchange ready nodes, and use coming nodes first.
//!
//! Nodes become free while the nodes that a gang ordered are still booting. The gang then starts at once on the free
//! ones, and the nodes that were coming for it go to another order that waits for such a node and would get its own
//! later. So nodes are used in the order they come, and a surplus node is the last one that was requested, which has
//! cost nothing yet.

use std::cmp::Reverse;

use muster_core::World;
use muster_core::id::{ClaimId, GangId, OrderId};
use muster_core::order::{Order, RollbackReason};
use muster_core::plan::{Action, ActionGroup, Plan};
use muster_core::time::Span;
use muster_core::topology::ROOT;
use muster_core::verdict::Verdict;

use crate::backfill::Holes;
use crate::cycle::Cycle;
use crate::order::quota::{over_limit, refund_minimum};
use crate::place::{Want, asks, place};
use crate::provision::{are_oversized, ready_in, suits};

/// Starts gangs whose orders still assemble and that fit on nodes that no gang of the queue has taken, oldest order
/// first. Does nothing where a gang holds a start time, since the free nodes may be booked.
pub(crate) fn start_early<'w>(cycle: &mut Cycle<'w>, holes: &Holes<'w>, plan: &mut Plan) {
    if !holes.is_empty() {
        return;
    }
    let world = cycle.scratch.world;
    let settled = |plan: &Plan, order: &Order| {
        plan.groups.iter().any(|group| group.gang == Some(order.spec.gang))
    };
    for order in world.orders().values() {
        let id = order.spec.gang;
        let gang = world.gang(id).expect("it has an order");
        // Victims that were told to leave have lost their work; the seats they leave are used.
        if settled(plan, order) || victims_told(world, order) || !may_fit(cycle, order) {
            continue;
        }
        let mut trial = cycle.scratch.trial();
        trial.rise(gang, &order.held);
        // While victims leave for an order, both count for the limit: the usage that an order gives up then may not
        // come back.
        refund_minimum(&mut trial, gang);
        if over_limit(&trial, gang).is_some() {
            continue;
        }
        let Ok(seats) = place(&mut trial, &mut cycle.fits, gang) else { continue };
        drop(trial);
        if are_oversized(cycle, gang, &seats) {
            continue;
        }
        cycle.scratch.rise(gang, &order.held);
        cycle.scratch.sit(gang, &seats);
        cycle.given.started_early.push(order.spec.id);
        cycle.given.admitted.push((id, seats.clone()));
        let order = order.spec.id;
        let actions = vec![
            Action::RollBack { order, reason: RollbackReason::NotNeeded },
            Action::Admit { gang: id, seats },
        ];
        plan.groups.push(ActionGroup { gang: Some(id), actions });
        if let Some((_, verdict)) = plan.verdicts.iter_mut().find(|(of, _)| *of == id) {
            *verdict = Verdict::Admitted;
        }
    }
}

/// Whether the victims of an order have been told.
fn victims_told(world: &World, order: &Order) -> bool {
    let ready = |claim: &ClaimId| world.claims()[claim].is_ready();
    !order.spec.after.is_empty() && order.spec.claims.iter().all(|(claim, _)| ready(claim))
}

/// Exchanges a ready node of one order for the node that an older one still waits for; whether there was such a pair.
pub(crate) fn exchange_nodes(world: &World, plan: &mut Plan) -> bool {
    let Some(exchange) = exchange(world) else { return false };
    plan.groups.push(ActionGroup { gang: None, actions: vec![exchange] });
    true
}

/// A ready node that an older order lacks as its only node: the older gang takes it and starts, the younger waits for
/// the node that the older was waiting for. So gangs start in order of submission, however long nodes take to boot.
fn exchange(world: &World) -> Option<Action> {
    let is_ready = |claim: &ClaimId| world.claims()[claim].is_ready();
    let submitted = |order: &Order| {
        let gang = world.gang(order.spec.gang).expect("it has an order");
        (Reverse(gang.spec.priority), gang.submitted, order.spec.gang)
    };
    // Orders that lack one claim, and which; the oldest gang first.
    let mut lacking: Vec<(&Order, ClaimId)> = Vec::new();
    let mut having: Vec<(&Order, ClaimId)> = Vec::new();
    for order in world.orders().values() {
        let mut missing = order.spec.claims.iter().map(|(id, _)| *id).filter(|id| !is_ready(id));
        let first = missing.next();
        if let (Some(only), None) = (first, missing.next())
            && world.claims()[&only].stage().is_some()
        {
            lacking.push((order, only));
        }
        having.extend(
            order.spec.claims.iter().filter(|(id, _)| is_ready(id)).map(|(id, _)| (order, *id)),
        );
    }
    if having.is_empty() {
        return None;
    }
    lacking.sort_by_key(|(order, _)| submitted(order));
    for (gets, coming) in lacking {
        let class = |claim: ClaimId| world.offering(world.claims()[&claim].offering).class;
        let fits = |(gives, ready): &&(&Order, ClaimId)| {
            let at = |claim: ClaimId| world.claims()[&claim].offering;
            let gang = |order: &Order| world.gang(order.spec.gang).expect("it has an order");
            submitted(gives) > submitted(gets)
                && class(*ready) == class(coming)
                && sits_alone(world, gives, *ready)
                && suits(world, gang(gets), gets, coming, at(*ready))
                && suits(world, gang(gives), gives, *ready, at(coming))
        };
        if let Some((gives, ready)) = having.iter().find(fits) {
            let (gets, gives) = (gets.spec.id, gives.spec.id);
            return Some(Action::Exchange { gets, coming, gives, ready: *ready });
        }
    }
    None
}

/// Whether only this order has seats on the node of its claim.
fn sits_alone(world: &World, order: &Order, claim: ClaimId) -> bool {
    let Some(node) = world.claims()[&claim].node() else { return false };
    let mine = order.held.iter().filter(|seat| seat.node == node);
    let mine: u32 = mine.map(|seat| u32::from(seat.members)).sum();
    world.node(node).is_some_and(|here| here.usable && here.seats == mine)
}

/// A gain of less than this is not worth a change.
const SOONER: Span = Span::secs(15);

/// Reassigns nodes that are coming for no order to orders that wait for such a node which comes later; the latest
/// first.
pub(crate) fn reassign_coming(cycle: &mut Cycle<'_>, plan: &mut Plan) {
    let (world, now) = (cycle.scratch.world, cycle.now);
    if cycle.memo.coming.is_empty() || world.orders().is_empty() {
        return;
    }
    let settled: Vec<GangId> = plan.groups.iter().filter_map(|group| group.gang).collect();
    let mut late: Vec<(Reverse<Span>, OrderId, ClaimId)> = Vec::new();
    for order in world.orders().values().filter(|order| !settled.contains(&order.spec.gang)) {
        for (id, _) in &order.spec.claims {
            let claim = &world.claims()[id];
            if claim.stage().is_some() && world.is_sound_without(order, *id) {
                late.push((Reverse(ready_in(world, now, claim)), order.spec.id, *id));
            }
        }
    }
    late.sort_unstable();
    let promised = |id: ClaimId| cycle.scratch.paper().iter().any(|node| node.coming == Some(id));
    let free: Vec<ClaimId> =
        cycle.memo.coming.iter().copied().filter(|id| !promised(*id)).collect();
    for claim in free {
        let comes = &world.claims()[&claim];
        if comes.stage().is_none() {
            continue; // stopped: it comes only if it is woken
        }
        let (offering, ready) = (comes.offering, ready_in(world, now, comes));
        let class = world.offering(offering).class;
        let found = late.iter().position(|(Reverse(then), order, lost)| {
            let order = &world.orders()[order];
            let gang = world.gang(order.spec.gang).expect("it has an order");
            ready + SOONER < *then
                && world.offering(world.claims()[lost].offering).class == class
                && suits(world, gang, order, *lost, offering)
        });
        if let Some(at) = found {
            let (_, order, lost) = late.remove(at);
            cycle.given.reassigned.push(claim);
            let gang = Some(world.orders()[&order].spec.gang);
            let actions = vec![Action::TopUp { order, lost, claim, offering }];
            plan.groups.push(ActionGroup { gang, actions });
        }
    }
}

/// Whether counting shows that a gang may fit: every role has places for the members that hold no seat yet.
fn may_fit(cycle: &mut Cycle<'_>, order: &Order) -> bool {
    let world = cycle.scratch.world;
    let gang = world.gang(order.spec.gang).expect("it has an order");
    asks(&cycle.scratch, gang).iter().all(|ask| {
        let held = order.held.iter().filter(|seat| seat.role == ask.role);
        let held: u32 = held.map(|seat| u32::from(seat.members)).sum();
        let free = cycle.fits.in_domain(&cycle.scratch, ROOT, Want::any(ask.sig));
        free + u64::from(held) >= u64::from(ask.count)
    })
}
