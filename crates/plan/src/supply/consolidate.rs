//! Consolidate: move gangs off underused nodes, so that these can be released.
//!
//! Only gangs that are elastic and say that they may be disrupted are moved, as a whole, and only when all of their
//! members fit on the other nodes there are. A node with a rigid gang on it is left alone. It is done when no gang
//! waits, one node at a time, and only if the node costs more than the work that is lost.

use muster_core::gang::{Gang, Phase};
use muster_core::id::{ClaimId, GangId, NodeIdx};
use muster_core::node::Node;
use muster_core::order::ClaimState;
use muster_core::plan::{Action, ActionGroup, Plan, StopReason};
use muster_core::proactive::Consolidate;
use muster_core::time::Span;

use crate::cycle::{Cycle, earliest};
use crate::place::place;
use crate::preempt::lost_time;

/// Empties the least used node that can be emptied, if there is one worth it.
pub(super) fn consolidate(cycle: &mut Cycle<'_>, plan: &mut Plan) {
    let world = cycle.scratch.world;
    let wants = |spec: &muster_core::pool::PoolSpec| spec.consolidate == Consolidate::WhenUnderused;
    if !world.pools().values().any(|pool| wants(&pool.spec))
        || !world.pending().is_empty()
        || !plan.groups.is_empty()
    {
        return;
    }
    let mut candidates: Vec<(u32, ClaimId, NodeIdx)> = world
        .claims()
        .iter()
        .filter(|(_, claim)| {
            wants(&world.pools()[claim.offering.pool].spec) && !claim.retiring && !claim.releasing
        })
        .filter_map(|(id, claim)| match claim.state {
            // Other workloads would be evicted with it, and not moved.
            ClaimState::Ready(node) => {
                let here = world.node(node).filter(|here| !here.others)?;
                Some((here.seats, *id, node))
            }
            _ => None,
        })
        .filter(|(seats, ..)| *seats > 0)
        .collect();
    candidates.sort_unstable();
    for (_, claim, node) in candidates {
        if let Some(moves) = moves(cycle, node) {
            let mut actions = vec![Action::Retire { claim }];
            actions.extend(
                moves.iter().map(|gang| Action::Stop { gang: *gang, reason: StopReason::Moved }),
            );
            plan.groups.push(ActionGroup { gang: None, actions });
            return;
        }
    }
}

/// The gangs that would have to move for a node to become empty, if all of them may, can, and it pays.
fn moves(cycle: &mut Cycle<'_>, node: NodeIdx) -> Option<Vec<GangId>> {
    let (world, now) = (cycle.scratch.world, cycle.now);
    let on_it = |gang: &Gang| gang.seats.iter().any(|seat| seat.node == node);
    let gangs: Vec<(GangId, &Gang)> = world.gangs().filter(|(_, gang)| on_it(gang)).collect();
    let (mut lost, mut left) = (0.0, Span::ZERO);
    let mut budgets = cycle.eviction_budgets();
    for (_, gang) in &gangs {
        let Phase::Running { at } = gang.phase else { return None };
        let ran = now.since(at);
        // Once: where a gang goes is decided when it is placed again, and must not be a reason to move it again.
        let may = gang.spec.may_move() && !gang.spec.is_rigid();
        // Several of one queue count against one budget.
        if let Some(budget) = budgets.get_mut(&gang.queue) {
            *budget = budget.checked_sub(1)?;
        }
        if gang.restarts > 0 || gang.resize.is_some() || !may {
            return None;
        }
        if ran < gang.spec.disruption.min_runtime {
            cycle.wake = earliest(cycle.wake, Some(at + gang.spec.disruption.min_runtime));
            return None;
        }
        // What it cannot save and starting again, on every node it holds.
        let mut nodes: Vec<NodeIdx> = gang.seats.iter().map(|seat| seat.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        lost += lost_time(gang, now).as_secs_f64() * nodes.len() as f64;
        let end = gang.estimated_end().unwrap_or(now);
        left = left.max(end.since(now));
    }
    if gangs.is_empty() || lost >= left.as_secs_f64() {
        return None;
    }
    let mut trial = cycle.scratch.trial();
    for (_, gang) in &gangs {
        trial.rise(gang, &gang.seats);
    }
    trial.close(node);
    // No gang is moved onto a node that is not used: that one could go instead, or is kept for another gang.
    let unused = |node: &Node| node.claim.is_some() && !node.is_used();
    for (idx, _) in world.nodes().filter(|(_, node)| unused(node)) {
        trial.close(idx);
    }
    for (_, gang) in &gangs {
        place(&mut trial, &mut cycle.fits, gang).ok()?;
    }
    Some(gangs.into_iter().map(|(id, _)| id).collect())
}
