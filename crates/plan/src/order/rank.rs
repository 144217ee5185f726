//! Rank the gangs that wait: by priority, the discipline's rank and age, or by queues that share.

use std::collections::VecDeque;

use muster_core::World;
use muster_core::gang::Gang;
use muster_core::id::{GangId, QueueIdx, SigIdx};
use muster_core::time::{Span, Time};
use muster_core::wait_queue::Waiter;
use smallvec::SmallVec;

use super::share::{Shares, counts_on};
use super::starvation::StarvationBound;
use crate::policy::Discipline;
use crate::scratch::Scratch;

/// What a discipline looks at.
pub(crate) struct View<'w> {
    pub(crate) world: &'w World,
    pub(crate) now: Time,
    pub(crate) starvation: StarvationBound<'w>,
}

/// A gang in the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueuedGang {
    pub(crate) id: GangId,
    /// It goes before all gangs of its priority and queue that are not due.
    pub(crate) due: bool,
    /// Its signature and its number of members, if it has nothing else to consider.
    pub(crate) simple: Option<(SigIdx, u32)>,
    /// Its submitter's estimate.
    pub(crate) said: Span,
}

/// Gangs that wait and have no order assembling, first to be served first.
pub(crate) enum ServingOrder<'w> {
    /// As they stand in the wait queue.
    InQueueOrder(std::slice::Iter<'w, Waiter>),
    /// Ranked by the discipline.
    Ranked(VecDeque<QueuedGang>),
    /// By turns of queues that share.
    Shared(Shared),
}

impl<'w> ServingOrder<'w> {
    pub(crate) fn new(view: &View<'w>, discipline: &dyn Discipline) -> Self {
        let waiting = view.world.waiting();
        let competes = |first: &Waiter| waiting.iter().any(|other| other.queue != first.queue);
        if discipline.by_share() && waiting.first().is_some_and(competes) {
            return ServingOrder::Shared(Shared::new(view, discipline));
        }
        let ranks = |first: &Waiter| {
            let gang = view.world.gang(first.id).expect("it waits");
            discipline.rank(view, gang).is_some()
        };
        if waiting.first().is_some_and(ranks) {
            return ServingOrder::Ranked(ranked(view, discipline, waiting.iter()).into());
        }
        ServingOrder::InQueueOrder(waiting.iter())
    }

    /// The next gang to serve, given what the scratch holds.
    pub(crate) fn next(&mut self, scratch: &Scratch<'_>) -> Option<QueuedGang> {
        match self {
            ServingOrder::InQueueOrder(waiters) => waiters.next().map(from_waiter),
            ServingOrder::Ranked(gangs) => gangs.pop_front(),
            ServingOrder::Shared(shared) => shared.next(scratch),
        }
    }

    /// A gang of this queue was started.
    pub(crate) fn served(&mut self, world: &World, queue: QueueIdx) {
        if let ServingOrder::Shared(shared) = self {
            shared.shares.invalidate(world, queue);
        }
    }

    /// How many gangs that are due are still to come.
    pub(crate) fn due(&self) -> usize {
        let due = |gangs: &VecDeque<QueuedGang>| gangs.iter().filter(|queued| queued.due).count();
        match self {
            ServingOrder::InQueueOrder(_) => 0,
            ServingOrder::Ranked(gangs) => gangs.iter().take_while(|queued| queued.due).count(),
            ServingOrder::Shared(shared) => shared.leaves.iter().map(|leaf| due(&leaf.gangs)).sum(),
        }
    }

    /// Whether queues compete.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, ServingOrder::Shared(_))
    }

    /// A gang holds a start time: the rest come in the discipline's backfill order, if it has one.
    pub(crate) fn backfill(&mut self, view: &View<'w>, discipline: &dyn Discipline) {
        let rank = |queued: &QueuedGang| {
            let gang = view.world.gang(queued.id).expect("it waits");
            Some((-i64::from(gang.spec.priority), ordered(discipline.backfill_rank(view, gang)?)))
        };
        let mut left: Vec<QueuedGang> = match self {
            ServingOrder::InQueueOrder(waiters) => {
                if waiters.clone().next().map(from_waiter).as_ref().and_then(rank).is_none() {
                    return;
                }
                waiters.map(from_waiter).collect()
            }
            ServingOrder::Ranked(gangs) => {
                if gangs.front().and_then(rank).is_none() {
                    return;
                }
                std::mem::take(gangs).into()
            }
            ServingOrder::Shared(_) => return,
        };
        left.sort_by_cached_key(|queued| rank(queued).unwrap_or_default());
        *self = ServingOrder::Ranked(left.into());
    }
}

fn from_waiter(waiter: &Waiter) -> QueuedGang {
    QueuedGang { id: waiter.id, due: false, simple: waiter.simple, said: waiter.said }
}

/// Gangs that wait because a node under them failed, by age. They are due: what they had is not given to other gangs
/// while the missing node is being provided.
pub(crate) fn repairs(world: &World) -> VecDeque<QueuedGang> {
    let waiter = |id: &GangId| world.waiting().iter().find(|waiter| waiter.id == *id);
    let due = |waiter| QueuedGang { due: true, ..from_waiter(waiter) };
    world.repairs().iter().filter_map(waiter).map(due).collect()
}

/// Gangs of one queue, or of all, in the discipline's order: priority, the due, rank, age.
fn ranked<'a>(
    view: &View<'_>,
    discipline: &dyn Discipline,
    waiters: impl Iterator<Item = &'a Waiter>,
) -> Vec<QueuedGang> {
    let mut all: Vec<(i64, bool, i64, Time, QueuedGang)> = waiters
        .map(|waiter| {
            let gang: &Gang = view.world.gang(waiter.id).expect("it waits");
            let has_slices = view.world.queue(gang.queue).spec.time_slice.is_some();
            let due = discipline.due_since(view, gang).filter(|_| !has_slices);
            let place = match due {
                Some(since) => since.0,
                // Gangs of a queue with time slices come in the order they wait.
                None if has_slices => 0,
                None => discipline.rank(view, gang).map_or(0, ordered),
            };
            let queued = QueuedGang { due: due.is_some(), ..from_waiter(waiter) };
            (-i64::from(waiter.priority), due.is_none(), place, gang.waits_since, queued)
        })
        .collect();
    all.sort_unstable_by_key(|(priority, later, place, submitted, queued)| {
        (*priority, *later, *place, *submitted, queued.id)
    });
    all.into_iter().map(|(.., queued)| queued).collect()
}

/// A float as an integer of the same order.
fn ordered(value: f64) -> i64 {
    let bits = value.to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// Queues that take turns, each with its own order.
pub(crate) struct Shared {
    leaves: Vec<Leaf>,
    shares: Shares,
}

/// The gangs of one queue, without those of queues below it.
struct Leaf {
    queue: QueueIdx,
    /// From the top of the tree down to the queue itself.
    path: SmallVec<[QueueIdx; 4]>,
    gangs: VecDeque<QueuedGang>,
}

/// A queue on the way down, or none where the path ends, and the leaves below it.
type Branch = (Option<QueueIdx>, SmallVec<[usize; 8]>);

impl Shared {
    fn new(view: &View<'_>, discipline: &dyn Discipline) -> Self {
        let mut queues: Vec<QueueIdx> = view.world.waiting().iter().map(|w| w.queue).collect();
        queues.sort_unstable();
        queues.dedup();
        let leaf = |queue: QueueIdx| {
            let mine = view.world.waiting().iter().filter(|waiter| waiter.queue == queue);
            let mut path: SmallVec<[QueueIdx; 4]> = view.world.queue_path(queue).collect();
            path.reverse();
            Leaf { queue, path, gangs: ranked(view, discipline, mine).into() }
        };
        let leaves = queues.into_iter().map(leaf).collect();
        Self { leaves, shares: Shares::new(view.world, view.now) }
    }

    fn next(&mut self, scratch: &Scratch<'_>) -> Option<QueuedGang> {
        self.leaves.retain(|leaf| !leaf.gangs.is_empty());
        if self.leaves.is_empty() {
            return None;
        }
        let all: SmallVec<[usize; 8]> = (0..self.leaves.len()).collect();
        let chosen = self.choose(scratch, &all, 0);
        self.leaves[chosen].gangs.pop_front()
    }

    /// The leaf that is served next among some that have the same ancestors down to `depth`.
    fn choose(&mut self, scratch: &Scratch<'_>, among: &[usize], depth: usize) -> usize {
        if let [only] = among {
            return *only;
        }
        let mut groups: SmallVec<[Branch; 8]> = SmallVec::new();
        for leaf in among {
            let branch = self.leaves[*leaf].path.get(depth).copied();
            match groups.iter_mut().find(|(known, _)| *known == branch) {
                Some((_, leaves)) => leaves.push(*leaf),
                None => groups.push((branch, SmallVec::from_slice(&[*leaf]))),
            }
        }
        let mut best: Option<((bool, f64, i64, GangId), usize)> = None;
        for (branch, leaves) in groups {
            let leaf = self.choose(scratch, &leaves, depth + 1);
            let key = self.sort_key(scratch, branch, leaf);
            let better = best.as_ref().is_none_or(|(known, _)| {
                (key.0.cmp(&known.0))
                    .then(key.1.total_cmp(&known.1))
                    .then((key.2, key.3).cmp(&(known.2, known.3)))
                    .is_lt()
            });
            if better {
                best = Some((key, leaf));
            }
        }
        best.expect("at least one group").1
    }

    /// The sort key of a branch among its siblings, if the first gang of this leaf is the next it would start.
    fn sort_key(
        &mut self,
        scratch: &Scratch<'_>,
        branch: Option<QueueIdx>,
        leaf: usize,
    ) -> (bool, f64, i64, GangId) {
        let id = self.leaves[leaf].gangs.front().expect("not empty").id;
        let gang = scratch.world.gang(id).expect("it waits");
        let (sure, share) = match branch {
            Some(queue) => {
                let sure = counts_on(scratch, queue, gang);
                (sure, self.shares.of(scratch, queue, id))
            }
            None => (false, self.shares.of_own(scratch, self.leaves[leaf].queue, id)),
        };
        (!sure, share, -i64::from(gang.spec.priority), id)
    }
}
