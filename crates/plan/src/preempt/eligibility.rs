//! Who may be asked to make way for whom.
//!
//! Within a queue a higher priority counts. Across queues only what was lent is taken back, as far as the
//! guarantee goes; where queues do not take turns by share, priority counts across them too, but never against
//! a queue that is within its guarantee. In a queue with time slices it is another's turn when a slice is over.
//! For a gentle gang nobody makes way by priority; what is its queue's right is so for all of its gangs.

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

/// By what right a gang is asked to stop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Reason {
    /// It runs on what was lent.
    Reclaim,
    /// Its slice of time is over.
    TimeSlice,
    /// Its priority is lower.
    Priority,
    /// It may be moved, and fits elsewhere.
    Move,
}

impl Reason {
    /// What it is told.
    pub(crate) fn stop_reason(self, by: GangId) -> StopReason {
        match self {
            Reason::Reclaim => StopReason::Reclaimed(by),
            Reason::TimeSlice => StopReason::Rotated(by),
            Reason::Priority => StopReason::Preempted(by),
            Reason::Move => StopReason::Moved,
        }
    }
}

/// What a gang that waits may ask of others, queue by queue: worked out once for all of them.
pub(crate) struct Eligibility<'c, 'w> {
    cycle: &'c Cycle<'w>,
    gang: &'c Gang,
    queues: Vec<QueueEligibility>,
}

/// What may be asked of the gangs of one queue.
struct QueueEligibility {
    /// What they run on was lent.
    lent: bool,
    /// The queue, and all above it, holds more than it can count on.
    beyond: bool,
    /// The one who asks is within what its own queue can count on.
    guaranteed: bool,
    /// One more of them may be stopped now.
    evictable: bool,
}

impl<'c, 'w> Eligibility<'c, 'w> {
    pub(crate) fn of(cycle: &'c Cycle<'w>, gang: &'c Gang) -> Self {
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

    /// By what right a gang that runs may be stopped, as things stand; moving it apart.
    pub(crate) fn reason_to_stop(&self, other: &Gang) -> Option<Reason> {
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

    /// Whether a gang that runs may be asked to go on with fewer members.
    pub(crate) fn may_shrink(&self, other: &Gang) -> bool {
        let (gang, to) = (self.gang, self.to(other));
        let foreign = gang.queue != other.queue;
        let by_share = self.cycle.policy.order.discipline().by_share() && foreign;
        let may = !foreign || to.beyond || to.guaranteed;
        // Those who are as important give up what they have grown onto as well, but to nobody who is gentle.
        let by_priority =
            gang.spec.priority >= other.spec.priority && (!gang.spec.disruption.gentle || to.lent);
        may && (by_share || by_priority)
    }
}

/// When somebody may be asked to stop who may not yet: it has run long enough, had its slice, or its queue allows it.
pub(crate) fn next_eligible(cycle: &Cycle<'_>, gang: &Gang) -> Option<Time> {
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

/// When a borrower that started at an instant can be asked for what a gang's queue lent: it has run for as long as it says it
/// must, or the lender has waited for as long as it says it does. Those that start while the lender waits do not make it
/// wait anew.
fn protected_until(world: &World, gang: &Gang, other: &Gang, started: Time) -> Time {
    let lender = world.queue(gang.queue).spec.reclaims_within();
    let runs = other.spec.disruption.min_runtime.min(lender);
    (started + runs).min(gang.submitted + lender)
}

/// Whether a gang that runs is of lower priority, where that counts.
fn has_lower_priority(cycle: &Cycle<'_>, gang: &Gang, other: &Gang) -> bool {
    let across = || {
        !cycle.policy.order.discipline().by_share()
            && branch_beyond_guarantee(&cycle.scratch, &cycle.given.leaving, gang, other.queue)
    };
    outranks(gang, other) && (gang.queue == other.queue || across())
}

/// Whether a gang is so much as allowed to have another stopped for its priority, which is higher.
fn outranks(gang: &Gang, other: &Gang) -> bool {
    !gang.spec.disruption.gentle && gang.spec.priority > other.spec.priority
}

/// When a gang that waits has its turn and one that runs has had its own: the queue's slice, or as much longer as
/// keeps what rotating costs small. What it would lose now counts: a gang that saves nothing has a longer slice the
/// longer it runs, and is never worth rotating. Who has only just had its turn lets others have a slice first.
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

/// Whether what a gang runs on was lent by the queue of one that waits, which is within its guarantee with it.
pub(crate) fn is_lent(scratch: &Scratch<'_>, leaving: &Leaving, gang: &Gang, other: &Gang) -> bool {
    is_guaranteed(scratch, gang, other.queue)
        && branch_beyond_guarantee(scratch, leaving, gang, other.queue)
}

/// Whether the branch of a waiting gang, where it parts from another's, is within its guarantee with it.
fn is_guaranteed(scratch: &Scratch<'_>, gang: &Gang, other: QueueIdx) -> bool {
    let (own, _) = diverging_paths(scratch.world, gang.queue, other);
    let Some(own) = own.first() else { return false };
    let sure = guaranteed(scratch.world, *own);
    let within = sure.concerns(&gang.wants)
        && sure.exceeded(scratch.queue_usage(*own), &gang.wants).is_none();
    within || counts_on(scratch, *own, gang)
}

/// Whether every queue of another's branch that has a guarantee holds more than that, of something the gang
/// wants, and will when those have left who are leaving. What is within a guarantee is nobody else's.
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

/// What gangs of each queue, and of those below it, still hold and are leaving.
#[derive(Debug, Default)]
pub(crate) struct Leaving(BTreeMap<QueueIdx, Usage>);

impl Leaving {
    /// What everybody leaves who was told to stop or makes way for an order.
    pub(crate) fn of(world: &World) -> Self {
        let mut leaving = Self::default();
        if !world.has_disruptable() {
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
    /// Somebody leaves these seats.
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

/// What a queue can count on: what it says, or else what those below it can count on together.
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

/// Where the ways up from two queues differ, each from the top down.
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
