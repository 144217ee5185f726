//! Step 6: give back what nobody needs.
//!
//! A node that came from a pool and has been idle for the pool's idle time is released. A claim that belongs
//! to no order and has not become a usable node is a leftover and goes at once.

use std::collections::BTreeSet;

use muster_core::id::NodeIdx;
use muster_core::order::{ClaimState, Place};
use muster_core::plan::{Action, ActionGroup, Plan};

use crate::cycle::{Cycle, earliest};

/// Adds releases to the plan, one group each: giving back one node does not depend on another.
pub(crate) fn supply(cycle: &mut Cycle<'_>, plan: &mut Plan) {
    let world = cycle.scratch.world;
    let wanted = wanted_nodes(plan);
    for (id, claim) in world.claims() {
        if claim.releasing || claim.order.is_some() {
            continue;
        }
        // A node that is not what it should be is given back once nobody is on it.
        if claim.joined.and_then(|node| world.node(node)).is_some_and(|node| node.seats > 0) {
            continue;
        }
        let due = match claim.state {
            ClaimState::Ready(node) => {
                let Some(here) = world.node(node) else { continue };
                if here.seats > 0 || wanted.contains(&node) {
                    continue;
                }
                here.idle_since + world.pools()[claim.offering.pool].spec.idle_after
            }
            ClaimState::Requested
            | ClaimState::Launched
            | ClaimState::Registered(_)
            | ClaimState::Failed(_) => cycle.now,
        };
        if due <= cycle.now {
            plan.groups
                .push(ActionGroup { gang: None, actions: vec![Action::Release { claim: *id }] });
        } else {
            cycle.wake = earliest(cycle.wake, Some(due));
        }
    }
}

/// Nodes on which something is to sit by what was decided in this cycle.
fn wanted_nodes(plan: &Plan) -> BTreeSet<NodeIdx> {
    let mut wanted = BTreeSet::new();
    for action in plan.actions() {
        match action {
            Action::Admit { seats, .. } => wanted.extend(seats.iter().map(|seat| seat.node)),
            Action::Order(spec) => {
                wanted.extend(spec.reservations.iter().filter_map(|r| match r.place {
                    Place::Node(node) => Some(node),
                    Place::Claim(_) => None,
                }));
            }
            Action::RollBack { .. } | Action::Stop { .. } | Action::Release { .. } => {}
        }
    }
    wanted
}
