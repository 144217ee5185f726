//! Supply each pool: bring it to its target, and release what is above.
//!
//! The target is how many free nodes a pool should have now. What is missing is requested, stopped nodes first; what
//! is above it is released after the pool's idle time, cheapest to lose first.

use muster_core::id::{Id, PoolIdx};
use muster_core::plan::{Action, ActionGroup, Plan};

use super::{consolidate, inventory, order_ahead, release, target};
use crate::cycle::Cycle;

/// Adds to the plan what each pool lacks or can spare.
pub(crate) fn supply(cycle: &mut Cycle<'_>, plan: &mut Plan) {
    let world = cycle.scratch.world;
    if world.pools().is_empty() {
        return;
    }
    let mut inventories = inventory::inventories(cycle, plan);
    for pool in (0..world.pools().len()).map(PoolIdx::from_index) {
        let mut held = std::mem::take(&mut inventories[pool.index()]);
        release::release_leftovers(cycle, &mut held, plan);
        let target = target::of(cycle, pool, &held);
        if target != muster_core::plan::Target::default() {
            plan.targets.push((pool, target));
        }
        order_ahead::order_ahead(cycle, pool, target, &mut held, plan);
        release::release_surplus(cycle, pool, target, held, plan);
    }
    consolidate::consolidate(cycle, plan);
}

/// One action that depends on no other.
pub(super) fn push_alone(plan: &mut Plan, action: Action) {
    plan.groups.push(ActionGroup { gang: None, actions: vec![action] });
}
