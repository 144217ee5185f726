//! Who may be asked to make way for whom.
//!
//! Within a queue a higher priority counts. Across queues only what was lent is taken back, as far as the
//! guarantee goes; where queues do not take turns by share, priority counts across them too, but never against
//! a queue that is within its guarantee. In a queue with time slices it is another's turn when a slice is over.

use muster_core::World;
use muster_core::gang::{Gang, Phase};
use muster_core::id::{GangId, Id, QueueIdx};
use muster_core::plan::StopReason;
use muster_core::queue::{Bounds, Usage};
use muster_core::time::{Span, Time};
use smallvec::SmallVec;

use super::loss::{lost_time, ran};
use crate::cycle::Cycle;
use crate::scratch::Scratch;

/// By what right a gang is asked to stop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Right {
    /// It runs on what was lent.
    Lent,
    /// Its slice of time is over.
    Turn,
    /// Its priority is lower.
    Lower,
    /// It may be moved, and fits elsewhere.
    Move,
}

impl Right {
    /// What it is told.
    pub(crate) fn reason(self, by: GangId) -> StopReason {
        match self {
            Right::Lent => StopReason::Reclaimed(by),
            Right::Turn => StopReason::Rotated(by),
            Right::Lower => StopReason::Preempted(by),
            Right::Move => StopReason::Moved,
        }
    }
}

/// What a gang that waits may ask of others, queue by queue: worked out once for all of them.
pub(super) struct Rights<'c, 'w> {
    cycle: &'c Cycle<'w>,
    gang: &'c Gang,
    queues: Vec<ToQueue>,
}

/// What may be asked of the gangs of one queue.
struct ToQueue {
    /// What they run on was lent.
    lent: bool,
    /// The queue, and all above it, holds more than it can count on.
    beyond: bool,
    /// The one who asks is within what its own queue can count on.
    sure: bool,
    /// One more of them may be stopped now.
    evictable: bool,
}

impl<'c, 'w> Rights<'c, 'w> {
    pub(super) fn of(cycle: &'c Cycle<'w>, gang: &'c Gang) -> Self {
        let budgets = cycle.eviction_budgets();
        let to = |queue: QueueIdx| {
            let sure = is_sure(&cycle.scratch, gang, queue);
            let beyond = branch_beyond_guarantee(&cycle.scratch, gang, queue);
            let evictable = budgets.get(&queue).is_none_or(|left| *left > 0);
            ToQueue { lent: sure && beyond, beyond, sure, evictable }
        };
        let queues = cycle.scratch.world.queues().iter().map(|(queue, _)| to(queue)).collect();
        Self { cycle, gang, queues }
    }

    fn to(&self, other: &Gang) -> &ToQueue {
        &self.queues[other.queue.index()]
    }

    /// By what right a gang that runs may be stopped, as things stand; moving it apart.
    pub(super) fn to_stop(&self, other: &Gang) -> Option<Right> {
        if !other.spec.disruption.preemptible {
            return None;
        }
        let (cycle, gang, to) = (self.cycle, self.gang, self.to(other));
        let (world, now) = (cycle.scratch.world, cycle.now);
        let ran = ran(other, now);
        let started = !matches!(other.phase, Phase::Admitted { .. });
        let protected = started && ran < other.spec.disruption.min_runtime;
        let lender = world.queue(gang.queue).spec.reclaims_within();
        let long_enough = !started || ran >= other.spec.disruption.min_runtime.min(lender);
        if long_enough && to.lent {
            return Some(Right::Lent);
        }
        if protected || !to.evictable {
            return None;
        }
        let (own, its) = (gang.spec.priority, other.spec.priority);
        let same = gang.queue == other.queue;
        let across = !cycle.policy.order.discipline().by_share() && to.beyond;
        if own > its && (same || across) {
            return Some(Right::Lower);
        }
        (same && own >= its && slice_is_over(world, other, now, cycle.policy.rotation_overhead))
            .then_some(Right::Turn)
    }

    /// Whether a gang that runs may be asked to go on with fewer members.
    pub(super) fn to_shrink(&self, other: &Gang) -> bool {
        let (gang, to) = (self.gang, self.to(other));
        let foreign = gang.queue != other.queue;
        let by_share = self.cycle.policy.order.discipline().by_share() && foreign;
        let may = !foreign || to.beyond || to.sure;
        may && (by_share || gang.spec.priority >= other.spec.priority)
    }
}

/// When somebody may be asked to stop who may not yet: it has run long enough, or had its slice.
pub(super) fn next_chance(cycle: &Cycle<'_>, gang: &Gang) -> Option<Time> {
    let (world, now) = (cycle.scratch.world, cycle.now);
    let chance = |other: &Gang| -> Option<Time> {
        let Phase::Running { at } = other.phase else { return None };
        let (own, its) = (gang.spec.priority, other.spec.priority);
        if !other.spec.disruption.preemptible || own < its {
            return None;
        }
        let protected = at + other.spec.disruption.min_runtime;
        let slice = (gang.queue == other.queue)
            .then(|| slice_end(world, other, now, cycle.policy.rotation_overhead))
            .flatten();
        let chance = match slice {
            Some(end) if own == its => end.max(protected),
            _ if own > its || is_lent(&cycle.scratch, gang, other) => protected,
            _ => return None,
        };
        (chance > now).then_some(chance)
    };
    world.gangs().filter_map(|(_, other)| chance(other)).min()
}

/// Whether a gang has run its slice: the queue's, or as much longer as keeps what rotating costs small.
pub(crate) fn slice_is_over(world: &World, gang: &Gang, now: Time, overhead: u32) -> bool {
    slice_end(world, gang, now, overhead).is_some_and(|end| end <= now)
}

/// When a gang that runs has run its slice, where its queue has slices. What it would lose now counts: a gang that
/// saves nothing has a longer slice the longer it runs, and is never worth rotating.
pub(crate) fn slice_end(world: &World, gang: &Gang, now: Time, overhead: u32) -> Option<Time> {
    let slice = world.queue(gang.queue).spec.time_slice?;
    let Phase::Running { at } = gang.phase else { return None };
    let costs = lost_time(gang, now);
    let worth = Span(costs.0.saturating_mul(1_000) / u64::from(overhead.max(1)));
    Some(at + slice.max(worth))
}

/// Whether what a gang runs on was lent by the queue of one that waits, which is within its guarantee with it.
pub(super) fn is_lent(scratch: &Scratch<'_>, gang: &Gang, other: &Gang) -> bool {
    is_sure(scratch, gang, other.queue) && branch_beyond_guarantee(scratch, gang, other.queue)
}

/// Whether the branch of a waiting gang, where it parts from another's, is within its guarantee with it.
fn is_sure(scratch: &Scratch<'_>, gang: &Gang, other: QueueIdx) -> bool {
    let (own, _) = parting(scratch.world, gang.queue, other);
    let Some(own) = own.first() else { return false };
    let sure = guaranteed(scratch.world, *own);
    sure.concerns(&gang.wants) && sure.exceeded(scratch.queue_usage(*own), &gang.wants).is_none()
}

/// Whether every queue of another's branch that has a guarantee holds more than that, of something the gang
/// wants. What is within a guarantee is nobody else's.
fn branch_beyond_guarantee(scratch: &Scratch<'_>, gang: &Gang, other: QueueIdx) -> bool {
    let world = scratch.world;
    let (_, its) = parting(world, gang.queue, other);
    its.iter().all(|queue| {
        let sure = guaranteed(world, *queue);
        !sure.concerns(&gang.wants) || is_beyond(&sure, scratch.queue_usage(*queue), &gang.wants)
    })
}

fn is_beyond(sure: &Bounds, held: &Usage, wants: &Usage) -> bool {
    let gpus = sure.gpu_milli.is_some_and(|sure| wants.gpu_milli > 0 && held.gpu_milli > sure);
    gpus || sure.amounts.iter().any(|(resource, sure)| {
        wants.amounts.get(*resource) > 0 && held.amounts.get(*resource) > *sure
    })
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
fn parting(world: &World, one: QueueIdx, other: QueueIdx) -> (Path, Path) {
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
