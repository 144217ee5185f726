//! Step 1: order the gangs that wait.

use std::collections::VecDeque;

use muster_core::World;
use muster_core::gang::Gang;
use muster_core::id::{GangId, QueueIdx, SigIdx};
use muster_core::line::Waiter;
use muster_core::time::{Span, Time};
use smallvec::SmallVec;

use super::share::{Shares, counts_on};
use super::starvation::Guard;
use crate::policy::Discipline;
use crate::scratch::Scratch;

/// What a discipline looks at.
pub(crate) struct View<'w> {
    pub(crate) world: &'w World,
    pub(crate) now: Time,
    pub(crate) guard: Guard<'w>,
}

/// One gang's turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) id: GangId,
    /// It goes before all of its priority and queue that are not due.
    pub(crate) due: bool,
    /// Its kind of member and how many, if that is all there is to know about it.
    pub(crate) simple: Option<(SigIdx, u32)>,
    /// What its submitter thinks it takes.
    pub(crate) said: Span,
}

/// Gangs that wait and have no order assembling, first to be served first.
pub(crate) enum Turns<'w> {
    /// As they stand in line.
    InLine(std::slice::Iter<'w, Waiter>),
    /// In an order of their own.
    Ranked(VecDeque<Turn>),
    /// Queues take turns.
    Shared(Shared),
}

impl<'w> Turns<'w> {
    pub(crate) fn new(view: &View<'w>, discipline: &dyn Discipline) -> Self {
        let waiting = view.world.waiting();
        let competes = |first: &Waiter| waiting.iter().any(|other| other.queue != first.queue);
        if discipline.by_share() && waiting.first().is_some_and(competes) {
            return Turns::Shared(Shared::new(view, discipline));
        }
        let ranks = |first: &Waiter| {
            let gang = view.world.gang(first.id).expect("it waits");
            discipline.rank(view, gang).is_some()
        };
        if waiting.first().is_some_and(ranks) {
            return Turns::Ranked(ranked(view, discipline, waiting.iter()).into());
        }
        Turns::InLine(waiting.iter())
    }

    /// Whose turn it is, as things stand in the scratch.
    pub(crate) fn next(&mut self, scratch: &Scratch<'_>) -> Option<Turn> {
        match self {
            Turns::InLine(waiters) => waiters.next().map(turn_in_line),
            Turns::Ranked(turns) => turns.pop_front(),
            Turns::Shared(shared) => shared.next(scratch),
        }
    }

    /// Something was given to a gang of this queue.
    pub(crate) fn given(&mut self, world: &World, queue: QueueIdx) {
        if let Turns::Shared(shared) = self {
            shared.shares.given(world, queue);
        }
    }

    /// How many that are due are still to come.
    pub(crate) fn due(&self) -> usize {
        let due = |turns: &VecDeque<Turn>| turns.iter().filter(|turn| turn.due).count();
        match self {
            Turns::InLine(_) => 0,
            Turns::Ranked(turns) => turns.iter().take_while(|turn| turn.due).count(),
            Turns::Shared(shared) => shared.leaves.iter().map(|leaf| due(&leaf.turns)).sum(),
        }
    }

    /// Whether queues compete.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Turns::Shared(_))
    }

    /// Somebody holds a start time: those left come in the order they may go before it, if that is another.
    pub(crate) fn backfill(&mut self, view: &View<'w>, discipline: &dyn Discipline) {
        let rank = |turn: &Turn| {
            let gang = view.world.gang(turn.id).expect("it waits");
            Some((-i64::from(gang.spec.priority), ordered(discipline.backfill_rank(view, gang)?)))
        };
        let mut left: Vec<Turn> = match self {
            Turns::InLine(waiters) => {
                if waiters.clone().next().map(turn_in_line).as_ref().and_then(rank).is_none() {
                    return;
                }
                waiters.map(turn_in_line).collect()
            }
            Turns::Ranked(turns) => {
                if turns.front().and_then(rank).is_none() {
                    return;
                }
                std::mem::take(turns).into()
            }
            Turns::Shared(_) => return,
        };
        left.sort_by_cached_key(|turn| rank(turn).unwrap_or_default());
        *self = Turns::Ranked(left.into());
    }
}

fn turn_in_line(waiter: &Waiter) -> Turn {
    Turn { id: waiter.id, due: false, simple: waiter.simple, said: waiter.said }
}

/// Gangs that wait because a node under them failed, by age. They are due: what they had is not given to others while
/// the missing node is got.
pub(crate) fn repairs(world: &World) -> VecDeque<Turn> {
    let waiter = |id: &GangId| world.waiting().iter().find(|waiter| waiter.id == *id);
    let due = |waiter| Turn { due: true, ..turn_in_line(waiter) };
    world.repairs().iter().filter_map(waiter).map(due).collect()
}

/// Those of one queue, or of all, in the discipline's order: priority, the due, rank, age.
fn ranked<'a>(
    view: &View<'_>,
    discipline: &dyn Discipline,
    waiters: impl Iterator<Item = &'a Waiter>,
) -> Vec<Turn> {
    let mut all: Vec<(i64, bool, i64, Time, Turn)> = waiters
        .map(|waiter| {
            let gang: &Gang = view.world.gang(waiter.id).expect("it waits");
            let takes_turns = view.world.queue(gang.queue).spec.time_slice.is_some();
            let due = discipline.due_since(view, gang).filter(|_| !takes_turns);
            let place = match due {
                Some(since) => since.0,
                // Who takes turns comes in the order they wait.
                None if takes_turns => 0,
                None => discipline.rank(view, gang).map_or(0, ordered),
            };
            let turn = Turn { due: due.is_some(), ..turn_in_line(waiter) };
            (-i64::from(waiter.priority), due.is_none(), place, gang.waits_since, turn)
        })
        .collect();
    all.sort_unstable_by_key(|(priority, later, place, submitted, turn)| {
        (*priority, *later, *place, *submitted, turn.id)
    });
    all.into_iter().map(|(.., turn)| turn).collect()
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

/// One queue's own gangs.
struct Leaf {
    queue: QueueIdx,
    /// From the top of the tree down to the queue itself.
    path: SmallVec<[QueueIdx; 4]>,
    turns: VecDeque<Turn>,
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
            Leaf { queue, path, turns: ranked(view, discipline, mine).into() }
        };
        let leaves = queues.into_iter().map(leaf).collect();
        Self { leaves, shares: Shares::new(view.world, view.now) }
    }

    fn next(&mut self, scratch: &Scratch<'_>) -> Option<Turn> {
        self.leaves.retain(|leaf| !leaf.turns.is_empty());
        if self.leaves.is_empty() {
            return None;
        }
        let all: SmallVec<[usize; 8]> = (0..self.leaves.len()).collect();
        let chosen = self.choose(scratch, &all, 0);
        self.leaves[chosen].turns.pop_front()
    }

    /// The leaf whose turn it is among some that have the same ancestors down to `depth`.
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
            let key = self.standing(scratch, branch, leaf);
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

    /// Where a branch stands among its siblings, if the first gang of this leaf is the next it would start.
    fn standing(
        &mut self,
        scratch: &Scratch<'_>,
        branch: Option<QueueIdx>,
        leaf: usize,
    ) -> (bool, f64, i64, GangId) {
        let id = self.leaves[leaf].turns.front().expect("not empty").id;
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
