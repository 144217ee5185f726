//! Settle what is under way before anything new is decided.
//!
//! An order becomes an admission when all of its nodes are ready. A claim that the provider put off is retried. An
//! order that has lost one claim gets a replacement where that is cheaper; one that has lost more than that, a node,
//! its time or its gang is rolled back as a whole. A running gang that has lost a node is stopped as a whole.

use muster_core::World;
use muster_core::gang::{Closeness, Gang, Phase, RoleSpec, Seat, without};
use muster_core::id::{ClaimId, GangId, NodeIdx};
use muster_core::order::{ClaimState, Order, Place, RollbackReason};
use muster_core::plan::{Action, ActionGroup, Plan, StopReason};
use muster_core::time::Time;
use muster_core::topology::Level;
use muster_core::verdict::Verdict;

use super::repair::repair;
use crate::cycle::earliest;
use crate::policy::Policy;
use crate::preempt::evict;
use crate::provision::replacement;

/// Settles every gang that does not simply wait, and gives it its verdict.
pub(crate) fn settle(world: &World, now: Time, policy: &Policy, plan: &mut Plan) {
    if policy.explain {
        settle_all(world, now, policy, world.gangs(), plan);
        return;
    }
    // A gang that simply runs needs nothing; only gangs with an order, a lost node or a cancellation are looked at.
    let mut concerned: Vec<GangId> = world.orders().values().map(|o| o.spec.gang).collect();
    concerned.extend(world.broken().keys().chain(world.cancelled()));
    concerned.sort_unstable();
    concerned.dedup();
    let concerned = concerned.into_iter().filter_map(|id| Some((id, world.gang(id)?)));
    settle_all(world, now, policy, concerned, plan);
}

fn settle_all<'w>(
    world: &'w World,
    now: Time,
    policy: &Policy,
    gangs: impl Iterator<Item = (GangId, &'w Gang)>,
    plan: &mut Plan,
) {
    for (id, gang) in gangs {
        let verdict = match gang.phase {
            Phase::Waiting => continue,
            Phase::Assembling(order) => {
                settle_order(world, now, policy, id, &world.orders()[&order], plan)
            }
            Phase::Admitted { .. } | Phase::Running { .. } => settle_running(world, id, plan),
            Phase::Stopping => Verdict::Stopping,
        };
        plan.verdicts.push((id, verdict));
    }
}

/// The verdict of a gang that does not wait, when nothing is settled in this cycle.
pub(crate) fn phase_verdict(world: &World, gang: &Gang) -> Option<Verdict> {
    match gang.phase {
        Phase::Waiting => None,
        Phase::Assembling(order) => Some(provisioning(world, &world.orders()[&order])),
        Phase::Admitted { .. } | Phase::Running { .. } => Some(Verdict::Running),
        Phase::Stopping => Some(Verdict::Stopping),
    }
}

/// How far an order is.
fn provisioning(world: &World, order: &Order) -> Verdict {
    let (total, deadline) = (order.spec.claims.len() as u32, order.spec.deadline);
    let ready =
        order.spec.claims.iter().filter(|(claim, _)| world.claims()[claim].is_ready()).count()
            as u32;
    let (leaving, ways) = (order.after.len() as u32, order.spec.ways.clone());
    Verdict::Provisioning { order: order.spec.id, ready, total, leaving, deadline, ways }
}

fn settle_running(world: &World, id: GangId, plan: &mut Plan) -> Verdict {
    let action = if world.cancelled().contains(&id) {
        Some(Action::Stop { gang: id, reason: StopReason::Cancelled })
    } else if let Some(node) = world.broken().get(&id) {
        repair(world, id, world.gang(id).expect("it runs"), *node)
    } else {
        None
    };
    let Some(action) = action else { return Verdict::Running };
    let stops = matches!(action, Action::Stop { .. });
    plan.groups.push(ActionGroup { gang: Some(id), actions: vec![action] });
    if stops { Verdict::Stopping } else { Verdict::Running }
}

fn settle_order(
    world: &World,
    now: Time,
    policy: &Policy,
    id: GangId,
    order: &Order,
    plan: &mut Plan,
) -> Verdict {
    let provisioning = provisioning(world, order);
    let Verdict::Provisioning { ready, total, deadline, .. } = provisioning else {
        unreachable!("an order is provisioning")
    };
    if let Some(reason) = broken(world, id, order) {
        roll_back(id, order, reason, plan);
        return provisioning;
    }
    let lost_claims = lost_claims(world, now, policy, id, order, plan);
    if let Some((lost, reason)) = lost_claims.first() {
        let only_one = lost_claims.len() == 1;
        if only_one && replaces_claim(plan) {
            return provisioning; // its own replacement comes after that
        }
        match replacement(world, now, policy, order, *lost).filter(|_| only_one) {
            Some(replacement) => {
                let actions = vec![replacement, Action::Release { claim: *lost }];
                plan.groups.push(ActionGroup { gang: Some(id), actions });
            }
            None => roll_back(id, order, *reason, plan),
        }
        return provisioning;
    }
    if ready == total && !order.after.is_empty() {
        match evict_victims(world, order) {
            Some(actions) if actions.is_empty() => {}
            Some(actions) => plan.groups.push(ActionGroup { gang: Some(id), actions }),
            None => {
                roll_back(id, order, RollbackReason::WayClosed, plan);
                return provisioning;
            }
        }
    }
    if ready == total
        && order.after.is_empty()
        && let Some(node) = unsuitable(world, id, order)
    {
        roll_back(id, order, RollbackReason::NodeUnsuitable(node), plan);
        return provisioning;
    }
    if ready == total && order.after.is_empty() {
        let mut seats = order.held.clone();
        seats.sort_by_key(|seat| seat.role);
        let actions = vec![Action::Admit { gang: id, seats }];
        plan.groups.push(ActionGroup { gang: Some(id), actions });
        return Verdict::Admitted;
    }
    if now >= deadline {
        roll_back(id, order, RollbackReason::DeadlinePassed, plan);
    } else {
        plan.wake = earliest(plan.wake, Some(deadline));
    }
    provisioning
}

/// The actions that evict the victims of an order once all of its nodes are ready; none for victims that were told
/// already. `None` if one of them cannot be evicted any more.
fn evict_victims(world: &World, order: &Order) -> Option<Vec<Action>> {
    let mut actions = Vec::new();
    for way in &order.after {
        let other = world.gang(way.gang)?;
        if way.stop.is_none() && other.resize.is_none() && other.is_steady() {
            let left = without(&other.seats, &way.seats);
            let has_them = left.len() + way.seats.len() == other.seats.len();
            let roles = other.spec.roles.iter().enumerate();
            let enough = |(role, spec): (usize, &RoleSpec)| {
                let mine = left.iter().filter(|seat| usize::from(seat.role) == role);
                mine.map(|seat| u32::from(seat.members)).sum::<u32>() >= spec.min
            };
            if !has_them || !roles.into_iter().all(enough) {
                return None;
            }
        }
        actions.extend(evict(other, way));
    }
    Some(actions)
}

/// The first thing found that ends an order early.
fn broken(world: &World, gang: GangId, order: &Order) -> Option<RollbackReason> {
    if world.cancelled().contains(&gang) {
        return Some(RollbackReason::GangGone);
    }
    let lost = order.spec.reservations.iter().find_map(|reservation| match reservation.place {
        Place::Node(node) => world.node(node).is_none_or(|here| !here.usable).then_some(node),
        Place::Claim(_) => None,
    });
    // No gang is started on a node that will be gone before much work is done there.
    let noticed = |seat: &&Seat| world.node(seat.node).is_some_and(|here| here.notice.is_some());
    let going = || order.held.iter().find(noticed).map(|seat| seat.node);
    lost.map(RollbackReason::NodeLost).or_else(|| going().map(RollbackReason::NodeUnsuitable))
}

/// A node among the order's seats on which the gang may not run after all: it came up elsewhere than asked,
/// or was relabelled or tainted since.
fn unsuitable(world: &World, id: GangId, order: &Order) -> Option<NodeIdx> {
    let gang = world.gang(id).expect("it has an order");
    let topology = world.topology();
    let close = matches!(gang.spec.closeness, Some(Closeness::Required(_)));
    let level = match gang.level.filter(|_| close) {
        Some(Level::Domain(level)) => Some(level),
        Some(Level::Node) | None => None,
    };
    let domain_of = |leaf| level.map(|level| topology.around(leaf, level));
    let mut first = None;
    for on_node in order.held.chunk_by(|a, b| a.node == b.node && a.role == b.role) {
        let node = world.node(on_node[0].node).expect("looked at before");
        let signature = world.signature(gang.sigs[usize::from(on_node[0].role)]);
        let suits = signature
            .score(world.class(node.class), topology, node.leaf, Some(&node.name))
            .is_some();
        let domain = domain_of(node.leaf);
        let nowhere = domain.is_some_and(|found| found.is_none_or(|d| !topology.is_named(d)));
        let cramped = world.is_too_small(on_node[0].node, order);
        let goes = node.notice.is_some();
        if !suits || goes || cramped || nowhere || *first.get_or_insert(domain) != domain {
            return Some(on_node[0].node);
        }
    }
    None
}

/// Rolls an order back. Its nodes belong to no order then: the next gang that can use them takes them, the pool keeps
/// them if it wants them, or else they are released.
fn roll_back(gang: GangId, order: &Order, reason: RollbackReason, plan: &mut Plan) {
    let actions = vec![Action::RollBack { order: order.spec.id, reason }];
    plan.groups.push(ActionGroup { gang: Some(gang), actions });
}

/// Claims of an order that will not come, or take too long; claims that the provider put off are retried.
fn lost_claims(
    world: &World,
    now: Time,
    policy: &Policy,
    gang: GangId,
    order: &Order,
    plan: &mut Plan,
) -> Vec<(ClaimId, RollbackReason)> {
    let mut lost_claims = Vec::new();
    for (id, _) in &order.spec.claims {
        if let ClaimState::Failed(failure) = world.claims()[id].state {
            match retry(world, now, policy, *id) {
                // After the order's deadline nothing is retried.
                Some(_) if now >= order.spec.deadline => {}
                Some(Ok(retry)) => {
                    plan.groups.push(ActionGroup { gang: Some(gang), actions: vec![retry] });
                }
                Some(Err(later)) => plan.wake = earliest(plan.wake, Some(later)),
                None => lost_claims.push((*id, RollbackReason::ClaimFailed(*id, failure))),
            }
            continue;
        }
        match world.claim_due(*id) {
            // After the order's deadline, the deadline is the reason, whatever one of its claims is late with.
            Some(_) if now >= order.spec.deadline => {}
            Some((stage, due)) if due <= now => {
                lost_claims.push((*id, RollbackReason::Overdue(*id, stage)));
            }
            due => plan.wake = earliest(plan.wake, due.map(|(_, due)| due)),
        }
    }
    lost_claims
}

/// The retry of a claim that the provider put off, or when it is due; none if a retry would not help.
pub(crate) fn retry(
    world: &World,
    now: Time,
    policy: &Policy,
    id: ClaimId,
) -> Option<Result<Action, Time>> {
    let claim = &world.claims()[&id];
    let ClaimState::Failed(failure) = claim.state else { return None };
    if !failure.is_transient() || claim.retries >= policy.retries {
        return None;
    }
    let at = policy.retry_at(claim.since, claim.retries);
    let again = Action::Retry { claim: id, attempt: claim.retries + 1 };
    Some(if at <= now { Ok(again) } else { Err(at) })
}

/// Whether a claim of another order is replaced already: the next replacement has to see what is left of the pools
/// then.
fn replaces_claim(plan: &Plan) -> bool {
    plan.actions().any(|action| matches!(action, Action::TopUp { .. }))
}
