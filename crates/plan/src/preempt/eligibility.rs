//! Which gangs may be preempted for which, and why.
//!
//! Within a queue a higher priority counts. Across queues only lent capacity is reclaimed, as far as the guarantee
//! goes; where queues do not share by turns, priority counts across them too, but never against a queue that is
//! within its guarantee. In a queue with time slices a gang may be rotated out when its slice is over. A gang that
//! never preempts has no gang stopped for its priority; what its queue is guaranteed is reclaimed for all of its
//! gangs.

use std::collections::BTreeMap;

use muster_core::World;
use muster_core::gang::{Gang, Phase, Seat};
use muster_core::id::{GangId, Id, QueueIdx};
use muster_core::plan::StopReason;
use muster_core::queue::{Bounds, Usage};
use muster_core::time::{Span, Time};
use smallvec::SmallVec;

use super::cost::lost_time;
use crate::cycle::Cycle;
use crate::order::counts_on;
use crate::scratch::Scratch;

/// Why a gang may be stopped for another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Reason {
    /// It runs on capacity that was lent.
    Reclaim,
    /// Its time slice is over.
    TimeSlice,
    /// Its priority is lower.
    Priority,
    /// It may be moved, and fits elsewhere.
    Move,
}

impl Reason {
    /// The reason that the gang is told.
    pub(crate) fn stop_reason(self, by: GangId) -> StopReason {
        match self {
            Reason::Reclaim => StopReason::Reclaimed(by),
            Reason::TimeSlice => StopReason::Rotated(by),
            Reason::Priority => StopReason::Preempted(by),
            Reason::Move => StopReason::Moved,
        }
    }
}

/// Which gangs may be preempted for one that waits: computed once for all queues.
pub(super) struct Eligibility<'c, 'w> {
    cycle: &'c Cycle<'w>,
    gang: &'c Gang,
    queues: Vec<QueueEligibility>,
}

/// How gangs of one queue may be preempted.
struct QueueEligibility {
    /// They run on lent capacity.
    lent: bool,
    /// The queue, and all above it, holds more than its guarantee.
    beyond: bool,
    /// The gang that waits is within the guarantee of its own queue.
    guaranteed: bool,
    /// One more gang of the queue may be stopped now.
    evictable: bool,
}

impl<'c, 'w> Eligibility<'c, 'w> {
    pub(super) fn of(cycle: &'c Cycle<'w>, gang: &'c Gang) -> Self {
        let budgets = cycle.eviction_budgets();
        let to = |queue: QueueIdx| {
            let guaranteed = is_guaranteed(&cycle.scratch, gang, queue);
            let beyond = branch_beyond_guarantee(&cycle.scratch, &cycle.given.leaving, gang, queue);
            let evictable = budgets.get(&queue).is_none_or(|left| *left > 0);
            QueueEligibility { lent: guaranteed && beyond, beyond, guaranteed, evictable }
        };
        let queues = cycle.scratch.world.queues().iter().map(|(queue, _)| to(queue)).collect();
        Self { cycle, gang, queues }
    }

    fn to(&self, other: &Gang) -> &QueueEligibility {
        &self.queues[other.queue.index()]
    }

    /// Why a gang that runs may be stopped now, other than to move it.
    pub(super) fn reason_to_stop(&self, other: &Gang) -> Option<Reason> {
        if !other.spec.disruption.preemptible {
            return None;
        }
        let (cycle, gang, to) = (self.cycle, self.gang, self.to(other));
        let (world, now) = (cycle.scratch.world, cycle.now);
        let running = match other.phase {
            Phase::Running { at } => Some(at),
            _ => None,
        };
        let protected = running.is_some_and(|at| now < at + other.spec.disruption.min_runtime);
        let reclaimable = running.is_none_or(|at| now >= protected_until(world, gang, other, at));
        if reclaimable && to.lent {
            return Some(Reason::Reclaim);
        }
        if protected || !to.evictable {
            return None;
        }
        let across = !cycle.policy.order.discipline().by_share() && to.beyond;
        if outranks(gang, other) && (gang.queue == other.queue || across) {
            return Some(Reason::Priority);
        }
        let turn = slice_end(world, gang, other, now, cycle.policy.rotation_overhead)?;
        (turn <= now).then_some(Reason::TimeSlice)
    }

    /// Whether a gang that runs may be shrunk.
    pub(super) fn may_shrink(&self, other: &Gang) -> bool {
        let (gang, to) = (self.gang, self.to(other));
        let foreign = gang.queue != other.queue;
        let by_share = self.cycle.policy.order.discipline().by_share() && foreign;
        let may = !foreign || to.beyond || to.guaranteed;
        // Gangs of equal priority give up seats they have grown onto as well, except to a gang that never preempts.
        let by_priority = gang.spec.priority >= other.spec.priority
            && (!gang.spec.disruption.never_preempts || to.lent);
        may && (by_share || by_priority)
    }
}

/// When the next gang may be stopped that may not be now: its minimum run time or its slice is over, or its queue
/// allows one more eviction.
pub(super) fn next_eligible(cycle: &Cycle<'_>, gang: &Gang) -> Option<Time> {
    let (world, now) = (cycle.scratch.world, cycle.now);
    let eligible_at = |other: &Gang| -> Option<Time> {
        let Phase::Running { at } = other.phase else { return None };
        if !other.spec.disruption.preemptible {
            return None;
        }
        let runs = other.spec.disruption.min_runtime;
        let lent = is_lent(&cycle.scratch, &cycle.given.leaving, gang, other)
            .then(|| protected_until(world, gang, other, at));
        let by_rank = || {
            let allowed = cycle.next_eviction(other.queue)?.max(at + runs);
            if has_lower_priority(cycle, gang, other) {
                return Some(allowed);
            }
            let turn = slice_end(world, gang, other, now, cycle.policy.rotation_overhead)?;
            Some(turn.max(allowed))
        };
        lent.into_iter().chain(by_rank()).filter(|at| *at > now).min()
    };
    world.gangs().filter_map(|(_, other)| eligible_at(other)).min()
}

/// Until when a borrower is protected from being reclaimed by the queue of a waiting gang: it has run for its
/// declared minimum, or the lender has waited for its declared time. Borrowers that start while the lender waits do
/// not make it wait anew.
fn protected_until(world: &World, gang: &Gang, other: &Gang, started: Time) -> Time {
    let lender = world.queue(gang.queue).spec.reclaims_within();
    let runs = other.spec.disruption.min_runtime.min(lender);
    (started + runs).min(gang.submitted + lender)
}

/// Whether a gang that runs is of lower priority, where priority counts.
fn has_lower_priority(cycle: &Cycle<'_>, gang: &Gang, other: &Gang) -> bool {
    let across = || {
        !cycle.policy.order.discipline().by_share()
            && branch_beyond_guarantee(&cycle.scratch, &cycle.given.leaving, gang, other.queue)
    };
    outranks(gang, other) && (gang.queue == other.queue || across())
}

/// Whether a gang may have another stopped for its priority, which is higher.
fn outranks(gang: &Gang, other: &Gang) -> bool {
    !gang.spec.disruption.never_preempts && gang.spec.priority > other.spec.priority
}

/// When a running gang's time slice is over for one that waits: the queue's slice, or as much longer as keeps the
/// cost of rotating small. The work it would lose now counts: a gang that saves nothing has a longer slice the longer
/// it runs, and is never worth rotating. A gang that was rotated out lets others have a slice first.
fn slice_end(world: &World, gang: &Gang, other: &Gang, now: Time, overhead: u32) -> Option<Time> {
    let slice = world.queue(other.queue).spec.time_slice?;
    let Phase::Running { at } = other.phase else { return None };
    if gang.queue != other.queue || gang.spec.priority < other.spec.priority {
        return None;
    }
    let costs = lost_time(other, now);
    let worth = Span(costs.0.saturating_mul(1_000) / u64::from(overhead.max(1)));
    let was_rotated = matches!(gang.stop, Some(StopReason::Rotated(_)));
    let again = if was_rotated { gang.waits_since + slice } else { now };
    Some((at + slice.max(worth)).max(again))
}

/// Whether a gang runs on capacity lent by the queue of one that waits, which is within its guarantee with it.
pub(super) fn is_lent(scratch: &Scratch<'_>, leaving: &Leaving, gang: &Gang, other: &Gang) -> bool {
    is_guaranteed(scratch, gang, other.queue)
        && branch_beyond_guarantee(scratch, leaving, gang, other.queue)
}

/// Whether the branch of a waiting gang, where it diverges from another's, is within its guarantee with it.
fn is_guaranteed(scratch: &Scratch<'_>, gang: &Gang, other: QueueIdx) -> bool {
    let (own, _) = diverging_paths(scratch.world, gang.queue, other);
    let Some(own) = own.first() else { return false };
    let sure = guaranteed(scratch.world, *own);
    let within = sure.concerns(&gang.wants)
        && sure.exceeded(scratch.queue_usage(*own), &gang.wants).is_none();
    within || counts_on(scratch, *own, gang)
}

/// Whether every queue of another's branch that has a guarantee holds more than that, of something the gang wants,
/// and still will when all victims that are leaving have left. Usage within a guarantee is not reclaimed.
fn branch_beyond_guarantee(
    scratch: &Scratch<'_>,
    leaving: &Leaving,
    gang: &Gang,
    other: QueueIdx,
) -> bool {
    let world = scratch.world;
    let (_, its) = diverging_paths(world, gang.queue, other);
    its.iter().all(|queue| {
        let sure = guaranteed(world, *queue);
        let (held, none) = (scratch.queue_usage(*queue), Usage::default());
        let leaves = leaving.0.get(queue).unwrap_or(&none);
        !sure.concerns(&gang.wants) || is_beyond(&sure, held, leaves, &gang.wants)
    })
}

fn is_beyond(sure: &Bounds, held: &Usage, leaves: &Usage, wants: &Usage) -> bool {
    let gpus = sure
        .gpu_milli
        .is_some_and(|sure| wants.gpu_milli > 0 && held.gpu_milli > sure + leaves.gpu_milli);
    gpus || sure.amounts.iter().any(|(resource, sure)| {
        wants.amounts.get(*resource) > 0
            && held.amounts.get(*resource) > *sure + leaves.amounts.get(*resource)
    })
}

/// What victims of each queue, and of those below it, still hold and are leaving.
#[derive(Debug, Default)]
pub(crate) struct Leaving(BTreeMap<QueueIdx, Usage>);

impl Leaving {
    /// Counts all gangs that were told to stop or are victims of an order.
    pub(crate) fn of(world: &World) -> Self {
        let mut leaving = Self::default();
        if !world.has_possible_victims() {
            return leaving;
        }
        for (_, gang) in world.gangs().filter(|(_, gang)| gang.phase == Phase::Stopping) {
            leaving.note(world, gang, &gang.seats);
        }
        for way in world.orders().values().flat_map(|order| &order.after) {
            let gang = world.gang(way.gang).filter(|gang| gang.phase != Phase::Stopping);
            gang.into_iter().for_each(|gang| leaving.note(world, gang, &way.seats));
        }
        leaving
    }
    /// Counts seats that a victim leaves.
    pub(crate) fn note(&mut self, world: &World, gang: &Gang, seats: &[Seat]) {
        for queue in world.queue_path(gang.queue) {
            let sum = self.0.entry(queue).or_default();
            for seat in seats {
                let signature = world.signature(gang.sigs[usize::from(seat.role)]);
                let members = u32::from(seat.members);
                sum.add(&signature.key.amounts, signature.gpu_milli(), members);
            }
        }
    }
}

/// The guarantee of a queue: its own, or else those of its children together.
fn guaranteed(world: &World, queue: QueueIdx) -> Bounds {
    let own = &world.queue(queue).guaranteed;
    if !own.is_empty() {
        return own.clone();
    }
    let mut sum = Bounds::default();
    let below = world.queues().iter().filter(|(_, listed)| listed.parent == Some(queue));
    for (child, _) in below {
        let child = guaranteed(world, child);
        if let Some(gpus) = child.gpu_milli {
            *sum.gpu_milli.get_or_insert(0) += gpus;
        }
        for (resource, amount) in child.amounts {
            *sum.amounts.entry(resource).or_default() += amount;
        }
    }
    sum
}

type Path = SmallVec<[QueueIdx; 4]>;

/// Where the paths of two queues diverge, each from the top down.
fn diverging_paths(world: &World, one: QueueIdx, other: QueueIdx) -> (Path, Path) {
    let down = |queue| {
        let mut path: Path = world.queue_path(queue).collect();
        path.reverse();
        path
    };
    let (mut one, mut other) = (down(one), down(other));
    let common = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
    one.drain(..common);
    other.drain(..common);
    (one, other)
}
