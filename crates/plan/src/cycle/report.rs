//! Verdicts of gangs: those in phases that need no decision, positions in the queue, late and stopping gangs.

use muster_core::World;
use muster_core::id::GangId;
use muster_core::plan::{Action, Plan};
use muster_core::verdict::{Blocker, Late, Verdict};

use super::serve::waiting;
use super::state::Cycle;
use crate::explain::{expected_starts, helps, late_by};
use crate::policy::Policy;
use crate::reserve::Bookings;
use crate::settle;

/// Late gangs that are told what would help in one cycle, at most.
const LATE_EXPLAINED: u32 = 16;

/// Reports every gang that does not wait by its phase.
pub(super) fn phases(world: &World, policy: &Policy, plan: &mut Plan) {
    if policy.explain {
        let verdicts =
            world.gangs().filter_map(|(id, gang)| Some((id, settle::phase_verdict(world, gang)?)));
        plan.verdicts.extend(verdicts);
    }
}

/// Reports that no gang that waits was considered in this cycle.
pub(super) fn not_considered(world: &World, policy: &Policy, plan: &mut Plan) {
    if policy.explain {
        let waiting = world.waiting().iter().map(|w| (w.id, waiting([Blocker::NotConsidered])));
        let mut verdicts = waiting.collect::<Vec<_>>();
        positions(&mut verdicts);
        plan.verdicts.extend(verdicts);
    }
}

/// Numbers the gangs that wait, in the order they were served.
pub(super) fn positions(verdicts: &mut [(GangId, Verdict)]) {
    let mut next = 1;
    for (_, verdict) in verdicts {
        if let Verdict::Waiting { position, .. } = verdict {
            *position = next;
            next += 1;
        }
    }
}

/// The gangs that wait, in the order they were served.
pub(super) fn waiting_gangs(verdicts: &[(GangId, Verdict)]) -> Vec<GangId> {
    let waits = |(id, verdict): &(GangId, Verdict)| {
        matches!(verdict, Verdict::Waiting { .. }).then_some(*id)
    };
    verdicts.iter().filter_map(waits).collect()
}

/// Reports by how much gangs that wait would miss their deadlines, and what would help.
pub(super) fn late<'w>(
    cycle: &mut Cycle<'w>,
    bookings: &Bookings<'w>,
    waiting: &[GangId],
    verdicts: &mut [(GangId, Verdict)],
) {
    let world = cycle.scratch.world;
    let has_deadline =
        |id: &GangId| world.gang(*id).is_some_and(|gang| gang.spec.deadline.is_some());
    if !waiting.iter().any(has_deadline) {
        return;
    }
    let starts = expected_starts(cycle, bookings.clone(), waiting);
    let mut explained = 0;
    for (id, verdict) in verdicts {
        let Verdict::Waiting { late, .. } = verdict else { continue };
        let gang = world.gang(*id).expect("it waits");
        let Some(by) = starts.get(id).and_then(|start| late_by(gang, *start)) else { continue };
        // Starting now must be early enough for anything to help.
        let in_time = late_by(gang, cycle.now).is_none() && explained < LATE_EXPLAINED;
        explained += 1;
        let helps = if in_time { helps(cycle, bookings, gang) } else { Vec::new() };
        *late = Some(Box::new(Late { by, helps }));
    }
}

/// Reports gangs that are told to stop in this cycle as stopping.
pub(super) fn stopping(plan: &mut Plan) {
    let Plan { groups, verdicts, .. } = plan;
    for action in groups.iter().flat_map(|group| &group.actions) {
        if let Action::Stop { gang, .. } = action
            && let Some((_, verdict)) = verdicts.iter_mut().find(|(id, _)| id == gang)
        {
            *verdict = Verdict::Stopping;
        }
    }
}
