//! Step 6: give back what nobody needs.
//!
//! A node that came from a pool and has been idle for the pool's idle time is released. A claim that belongs
//! to no order and has not become a usable node is a leftover and goes at once.

use muster_core::order::ClaimState;
use muster_core::plan::{Action, ActionGroup, Plan};

use crate::cycle::{Cycle, earliest};

/// Adds releases to the plan, one group each: giving back one node does not depend on another.
pub(crate) fn supply(cycle: &mut Cycle<'_>, plan: &mut Plan) {
    let world = cycle.scratch.world;
    for (id, claim) in world.claims() {
        if claim.releasing || claim.order.is_some() {
            continue;
        }
        let due = match claim.state {
            ClaimState::Ready(node) => {
                let Some(here) = world.node(node) else { continue };
                if here.seats > 0 || cycle.scratch.touched(node) {
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
