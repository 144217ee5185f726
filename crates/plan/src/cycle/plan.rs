//! One cycle, step by step: [`plan`] is the table of contents of the crate.

use muster_core::World;
use muster_core::id::GangId;
use muster_core::plan::{Action, Plan};
use muster_core::time::Time;
use muster_core::topology::Levels;

use super::queue::serve_queue;
use super::report;
use super::state::Cycle;
use crate::backfill::Holes;
use crate::grow::grow;
use crate::policy::Policy;
use crate::reassign_nodes::{exchange_nodes, reassign_coming, start_early};
use crate::settle::{leave_noticed_nodes, settle};
use crate::supply::supply;

/// An empty World that keeps what this policy looks at.
pub fn world_for(policy: &Policy, levels: Levels) -> World {
    if policy.order.needs_baseline() { World::with_baseline(levels) } else { World::new(levels) }
}

/// Decides everything that can be decided now.
///
/// The World is only read. Before the host's first full report nothing is decided at all.
pub fn plan(world: &World, now: Time, policy: &Policy) -> Plan {
    let mut plan = Plan::default();
    if let Outcome::Served(Served { mut cycle, mut holes, .. }) =
        decide_starts(world, now, policy, &mut plan)
    {
        grow(&mut cycle, &mut holes, &mut plan);
        supply(&mut cycle, &mut plan);
        plan.wake = cycle.wake;
    }
    plan.verdicts.sort_unstable_by_key(|(id, _)| *id);
    plan
}

/// Whether the queue was served in this cycle.
#[expect(clippy::large_enum_variant, reason = "made once a cycle and taken apart at once")]
pub(crate) enum Outcome<'w> {
    /// The host has not reported everything yet: nothing was decided.
    NotSynced,
    /// Only what is under way was settled: the World has to apply that before the queue is served.
    Postponed,
    /// Every gang that waits was considered.
    Served(Served<'w>),
}

/// The cycle after the queue was served.
pub(crate) struct Served<'w> {
    pub(crate) cycle: Cycle<'w>,
    /// The booked start times, and what is free beside them.
    pub(crate) holes: Holes<'w>,
    /// The gangs that wait, in the order they were served.
    pub(crate) waiting: Vec<GangId>,
}

/// Settles what is under way and serves the queue.
///
/// No gang has grown yet: seats that gangs grow into are reclaimed when they are wanted, so start times are computed
/// without growth.
pub(crate) fn decide_starts<'w>(
    world: &'w World,
    now: Time,
    policy: &'w Policy,
    plan: &mut Plan,
) -> Outcome<'w> {
    if !world.is_synced() {
        return Outcome::NotSynced;
    }
    if exchange_nodes(world, plan) {
        report::phases(world, policy, plan);
        return postponed(world, policy, plan);
    }
    settle(world, now, policy, plan);
    leave_noticed_nodes(world, now, plan);
    if plan.actions().any(changes_supply) {
        return postponed(world, policy, plan);
    }
    let mut cycle = Cycle::new(world, now, policy, plan);
    let (mut verdicts, holes) = serve_queue(&mut cycle, plan);
    start_early(&mut cycle, &holes, plan);
    reassign_coming(&mut cycle, plan);
    report::positions(&mut verdicts);
    let waiting = report::waiting_gangs(&verdicts);
    report::late(&mut cycle, &holes.bookings, &waiting, &mut verdicts);
    report::stopping(plan);
    plan.verdicts.extend(verdicts);
    Outcome::Served(Served { cycle, holes, waiting })
}

/// Puts the queue off to the next cycle.
fn postponed<'w>(world: &World, policy: &Policy, plan: &mut Plan) -> Outcome<'w> {
    report::not_considered(world, policy, plan);
    Outcome::Postponed
}

/// Whether the World must apply an action before the queue is served: only then has a gang whose order was rolled back
/// its place in the queue again, and the offering is known to fail. Until then no gang is served past it.
fn changes_supply(action: &Action) -> bool {
    matches!(action, Action::RollBack { .. } | Action::TopUp { .. })
}
