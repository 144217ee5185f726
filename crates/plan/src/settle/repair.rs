//! Repair gangs whose nodes are lost, or will be: a gang goes on without the node if it can, or else starts over as a
//! whole, before all other gangs, on the nodes it had and one more.

use muster_core::World;
use muster_core::gang::{Gang, Phase, Seat};
use muster_core::id::{GangId, NodeIdx};
use muster_core::plan::{Action, ActionGroup, Plan, StopReason};
use muster_core::time::Time;
use muster_core::verdict::Verdict;

use crate::cycle::earliest;
use crate::place::{Fits, place};
use crate::scratch::Scratch;

/// The action for a gang that has lost a node.
pub(crate) fn repair(world: &World, id: GangId, gang: &Gang, lost: NodeIdx) -> Option<Action> {
    let there = |seat: &Seat| world.node(seat.node).is_some();
    if let Some(resize) = &gang.resize {
        // It is being resized; if all nodes of its new seats are there it need not start over.
        let all_right = resize.to.iter().all(there);
        return (!all_right).then_some(stop(id, StopReason::NodeLost(lost)));
    }
    match smaller(gang, there) {
        Some(seats) if world.preempted_for(id).is_none() => {
            Some(Action::Resize { gang: id, seats })
        }
        _ => Some(stop(id, StopReason::NodeLost(lost))),
    }
}

fn stop(gang: GangId, reason: StopReason) -> Action {
    Action::Stop { gang, reason }
}

/// The seats an elastic gang keeps, if those are enough for it.
fn smaller(gang: &Gang, keeps: impl Fn(&Seat) -> bool) -> Option<Vec<Seat>> {
    if gang.spec.is_rigid() || !gang.is_steady() {
        return None;
    }
    let seats: Vec<Seat> = gang.seats.iter().copied().filter(|seat| keeps(seat)).collect();
    let enough = gang.spec.roles.iter().enumerate().all(|(role, spec)| {
        let mine = seats.iter().filter(|seat| usize::from(seat.role) == role);
        mine.map(|seat| u32::from(seat.members)).sum::<u32>() >= spec.min
    });
    enough.then_some(seats)
}

/// Takes gangs off nodes with a notice that they will be gone. An elastic gang leaves at once. A rigid gang that can
/// save its work stops in time for that, and sooner if it fits elsewhere and does not end before; one that cannot
/// save stays as long as its node.
pub(crate) fn leave_noticed_nodes(world: &World, now: Time, plan: &mut Plan) {
    let mut handled: Vec<GangId> = Vec::new();
    for (by, node) in world.noticed() {
        for (id, _) in world.gangs_on(node) {
            let Some(gang) = world.gang(*id) else { continue };
            if handled.contains(id) || !concerns(world, *id, gang, plan) {
                continue;
            }
            let keeps = |seat: &Seat| world.node(seat.node).is_some_and(|n| n.notice.is_none());
            let saves = gang.spec.disruption.checkpoint.is_some_and(|c| c.signal.is_some());
            let action = match smaller(gang, keeps) {
                Some(seats) if world.preempted_for(*id).is_none() => {
                    Action::Resize { gang: *id, seats }
                }
                _ if !saves => continue,
                _ => {
                    let latest = by - gang.spec.disruption.grace;
                    let ends_before =
                        gang.estimated_end().is_some_and(|end| end > now && end <= by);
                    if now < latest && (ends_before || !fits_elsewhere(world, gang)) {
                        plan.wake = earliest(plan.wake, Some(latest));
                        continue;
                    }
                    stop(*id, StopReason::NodeFailing(node))
                }
            };
            handled.push(*id);
            if matches!(action, Action::Stop { .. })
                && let Some((_, verdict)) = plan.verdicts.iter_mut().find(|(of, _)| of == id)
            {
                *verdict = Verdict::Stopping;
            }
            plan.groups.push(ActionGroup { gang: Some(*id), actions: vec![action] });
        }
    }
}

fn concerns(world: &World, id: GangId, gang: &Gang, plan: &Plan) -> bool {
    matches!(gang.phase, Phase::Running { .. })
        && gang.resize.is_none()
        && !world.broken().contains_key(&id)
        && !world.cancelled().contains(&id)
        && !plan.groups.iter().any(|group| group.gang == Some(id))
}

/// Whether all of a gang would fit on its own and free nodes, without nodes that will be gone.
fn fits_elsewhere(world: &World, gang: &Gang) -> bool {
    let mut scratch = Scratch::new(world);
    scratch.rise(gang, &gang.seats);
    place(&mut scratch, &mut Fits::default(), gang).is_ok()
}
