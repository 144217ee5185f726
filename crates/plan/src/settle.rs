//! Before anything new: settle what is under way.
//!
//! An order whose every node is ready becomes an admission. An order that has lost a claim, a node, its time
//! or its gang is rolled back whole. A running gang that has lost a node is stopped whole.

use muster_core::World;
use muster_core::gang::{Closeness, Gang, Phase};
use muster_core::id::{GangId, NodeIdx};
use muster_core::order::{ClaimState, Order, Place, RollbackReason};
use muster_core::plan::{Action, ActionGroup, Plan, StopReason};
use muster_core::time::Time;
use muster_core::topology::Level;
use muster_core::verdict::Verdict;

use crate::cycle::earliest;
use crate::policy::Policy;

/// Settles every gang that does not simply wait, and gives it its verdict.
pub(crate) fn settle(world: &World, now: Time, policy: &Policy, plan: &mut Plan) {
    if policy.explain {
        settle_all(world, now, world.gangs(), plan);
        return;
    }
    // Gangs that simply run need nothing; only those that something is up with are looked at.
    let mut concerned: Vec<GangId> = world.orders().values().map(|o| o.spec.gang).collect();
    concerned.extend(world.broken().keys().chain(world.cancelled()));
    concerned.sort_unstable();
    concerned.dedup();
    let concerned = concerned.into_iter().filter_map(|id| Some((id, world.gang(id)?)));
    settle_all(world, now, concerned, plan);
}

fn settle_all<'w>(
    world: &'w World,
    now: Time,
    gangs: impl Iterator<Item = (GangId, &'w Gang)>,
    plan: &mut Plan,
) {
    for (id, gang) in gangs {
        let verdict = match gang.phase {
            Phase::Waiting => continue,
            Phase::Assembling(order) => settle_order(world, now, id, &world.orders()[&order], plan),
            Phase::Admitted { .. } | Phase::Running { .. } => settle_running(world, id, plan),
            Phase::Stopping => Verdict::Stopping,
        };
        plan.verdicts.push((id, verdict));
    }
}

fn settle_running(world: &World, id: GangId, plan: &mut Plan) -> Verdict {
    let reason = if world.cancelled().contains(&id) {
        StopReason::Cancelled
    } else if let Some(node) = world.broken().get(&id) {
        StopReason::NodeLost(*node)
    } else {
        return Verdict::Running;
    };
    let actions = vec![Action::Stop { gang: id, reason }];
    plan.groups.push(ActionGroup { gang: Some(id), actions });
    Verdict::Stopping
}

fn settle_order(world: &World, now: Time, id: GangId, order: &Order, plan: &mut Plan) -> Verdict {
    let (total, deadline) = (order.spec.claims.len() as u32, order.spec.deadline);
    let is_ready = |claim| matches!(world.claims()[&claim].state, ClaimState::Ready(_));
    let ready = order.spec.claims.iter().filter(|(claim, _)| is_ready(*claim)).count() as u32;
    let provisioning = Verdict::Provisioning { order: order.spec.id, ready, total, deadline };
    if let Some(reason) = broken(world, id, order) {
        roll_back(world, id, order, reason, plan);
        return provisioning;
    }
    if ready == total
        && let Some(node) = unsuitable(world, id, order)
    {
        roll_back(world, id, order, RollbackReason::NodeUnsuitable(node), plan);
        return provisioning;
    }
    if ready == total {
        let mut seats = order.held.clone();
        seats.sort_by_key(|seat| seat.role);
        let actions = vec![Action::Admit { gang: id, seats }];
        plan.groups.push(ActionGroup { gang: Some(id), actions });
        return Verdict::Admitted;
    }
    if now >= deadline {
        roll_back(world, id, order, RollbackReason::DeadlinePassed, plan);
    } else {
        plan.wake = earliest(plan.wake, Some(deadline));
    }
    provisioning
}

/// What ends an order early, the first found.
fn broken(world: &World, gang: GangId, order: &Order) -> Option<RollbackReason> {
    if world.cancelled().contains(&gang) {
        return Some(RollbackReason::GangGone);
    }
    for (claim, _) in &order.spec.claims {
        if let ClaimState::Failed(failure) = world.claims()[claim].state {
            return Some(RollbackReason::ClaimFailed(*claim, failure));
        }
    }
    let lost = order.spec.reservations.iter().find_map(|reservation| match reservation.place {
        Place::Node(node) => world.node(node).is_none_or(|here| !here.usable).then_some(node),
        Place::Claim(_) => None,
    });
    lost.map(RollbackReason::NodeLost)
}

/// A node among the order's seats on which the gang may not run after all: it came up elsewhere than asked,
/// or was relabelled or tainted since.
fn unsuitable(world: &World, id: GangId, order: &Order) -> Option<NodeIdx> {
    let gang = world.gang(id).expect("it has an order");
    let topology = world.topology();
    let close = matches!(gang.spec.closeness, Some(Closeness::Required(_)));
    let depth = match gang.level.filter(|_| close) {
        Some(Level::Domain(level)) => Some(level.0 + 1),
        Some(Level::Node) | None => None,
    };
    let domain_of =
        |leaf| depth.map(|depth| topology.path(leaf).find(|d| topology.domain(*d).depth == depth));
    let mut first = None;
    for on_node in order.held.chunk_by(|a, b| a.node == b.node && a.role == b.role) {
        let node = world.node(on_node[0].node).expect("looked at before");
        let signature = world.signature(gang.sigs[usize::from(on_node[0].role)]);
        let suits = signature
            .score(world.class(node.class), topology, node.leaf, Some(&node.name))
            .is_some();
        let domain = domain_of(node.leaf);
        let nowhere = domain.is_some_and(|found| found.is_none_or(|d| !topology.is_named(d)));
        let cramped = world.is_cramped(on_node[0].node);
        if !suits || cramped || nowhere || *first.get_or_insert(domain) != domain {
            return Some(on_node[0].node);
        }
    }
    None
}

/// Rolls an order back: claims that are not ready go with it, nodes that are ready stay for others.
fn roll_back(world: &World, gang: GangId, order: &Order, reason: RollbackReason, plan: &mut Plan) {
    let mut actions = vec![Action::RollBack { order: order.spec.id, reason }];
    for (id, _) in &order.spec.claims {
        let claim = &world.claims()[id];
        let mine = order.held.iter().filter(|seat| Some(seat.node) == claim.joined);
        let mine: u32 = mine.map(|seat| u32::from(seat.members)).sum();
        let shared = claim.joined.and_then(|node| world.node(node));
        let shared = shared.is_some_and(|node| node.seats > mine);
        // A node others sit on as well is given back once they have left; see supply.
        if !matches!(claim.state, ClaimState::Ready(_)) && !shared {
            actions.push(Action::Release { claim: *id });
        }
    }
    plan.groups.push(ActionGroup { gang: Some(gang), actions });
}
