//! Serve the queue: every gang that waits, in the discipline's order, with start times for those entitled to one.

use muster_core::gang::Gang;
use muster_core::id::GangId;
use muster_core::plan::Plan;
use muster_core::time::Time;
use muster_core::verdict::{Blocker, Verdict};

use super::serve::{serve_gang, waiting};
use super::state::Cycle;
use crate::backfill::Holes;
use crate::order::{ServingOrder, StarvationBound, View, allowed, repairs};
use crate::policy::Overtaking;
use crate::scratch::Scratch;

/// With more gangs due than this only the first holds a start time: promises to a crowd idle the nodes that
/// would make it smaller.
const CROWD: usize = 20;

/// Serves the queue in order. Under a discipline with reservations, gangs that must wait and are entitled to it get a
/// start time, and gangs behind them are served in the holes beside it.
pub(super) fn serve_queue<'w>(
    cycle: &mut Cycle<'w>,
    plan: &mut Plan,
) -> (Vec<(GangId, Verdict)>, Holes<'w>) {
    let world = cycle.scratch.world;
    let discipline = cycle.policy.order.discipline();
    let view = View { world, now: cycle.now, starvation: StarvationBound::of(world, cycle.now) };
    let mut order = ServingOrder::new(&view, discipline);
    let mut holes = Holes::default();
    let mut verdicts = Vec::new();
    let mut tried: u32 = 0;
    // Gangs that are entitled to a start time. Where verdicts are not read it is computed only when a gang comes that
    // could go before.
    let mut entitled_later: Vec<GangId> = Vec::new();
    // A gang that lost a node keeps what it had, and goes first.
    let mut first = repairs(world);
    let repaired: Vec<GangId> = first.iter().map(|queued| queued.id).collect();
    let mut next = |order: &mut ServingOrder<'w>, scratch: &Scratch<'_>| {
        first.pop_front().or_else(|| {
            std::iter::from_fn(|| order.next(scratch)).find(|queued| !repaired.contains(&queued.id))
        })
    };
    while let Some(queued) = next(&mut order, &cycle.scratch) {
        let entitled = match discipline.overtaking() {
            Overtaking::Backfill(most) => holes.len() + entitled_later.len() < most,
            Overtaking::BackfillDue(most) => {
                let held = holes.len() + entitled_later.len();
                let first = order.is_shared() && held == 0;
                let most = || if order.due() > CROWD { 1 } else { most };
                (queued.due || first) && held < most()
            }
            Overtaking::Barred | Overtaking::Free => false,
        };
        if tried >= cycle.policy.trials {
            if cycle.policy.explain {
                verdicts.push((queued.id, waiting([Blocker::NotConsidered])));
            }
            continue;
        }
        let cannot_fit = !cycle.policy.explain && cycle.cannot_fit(&queued);
        if cannot_fit && !entitled {
            continue;
        }
        if !cannot_fit {
            for id in entitled_later.drain(..) {
                let gang = world.gang(id).expect("it waits");
                promise(cycle, id, gang, &mut holes, plan);
            }
        }
        let quiet = !cycle.policy.explain && !world.has_possible_victims();
        if quiet && !entitled && holes.would_delay(cycle, &queued) {
            continue;
        }
        tried += 1;
        cycle.searches.next_gang();
        let gang = world.gang(queued.id).expect("it waits");
        // A gang behind another under a limit is not first: when it will be is unknown.
        let may_start = cycle.barred_by(gang).is_none()
            && cycle.closed_to(gang).is_none()
            && allowed::refused(cycle, gang).is_none();
        let entitled = entitled && may_start;
        let mut verdict = serve_gang(cycle, queued.id, gang, &mut holes, plan);
        match &mut verdict {
            Verdict::Admitted | Verdict::Provisioning { .. } => {
                order.served(world, gang.queue);
                cycle.limits.non_preemptible.start(gang);
            }
            Verdict::Waiting { start, .. } if entitled => {
                let first = holes.is_empty() && entitled_later.is_empty();
                if cycle.policy.explain {
                    *start = promise(cycle, queued.id, gang, &mut holes, plan);
                } else {
                    entitled_later.push(queued.id);
                }
                if first {
                    order.backfill(&view, discipline);
                }
            }
            _ => {}
        }
        if cycle.policy.explain {
            verdicts.push((queued.id, verdict));
        }
    }
    // Gangs that could grow must keep off what is promised.
    for id in entitled_later.drain(..).filter(|_| world.has_possible_victims()) {
        promise(cycle, id, world.gang(id).expect("it waits"), &mut holes, plan);
    }
    (verdicts, holes)
}

/// Gives a gang that must wait a start time, if waiting is enough for it; else gangs behind it stay off what it waits
/// for.
fn promise<'w>(
    cycle: &mut Cycle<'w>,
    id: GangId,
    gang: &Gang,
    holes: &mut Holes<'w>,
    plan: &mut Plan,
) -> Option<Time> {
    match holes.bookings.earliest(cycle, id, gang) {
        Some(booking) => {
            let start = booking.start;
            plan.reservations.push((id, start));
            holes.book(gang, booking);
            Some(start)
        }
        None => {
            cycle.bar(id, gang);
            None
        }
    }
}
