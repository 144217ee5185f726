//! The budget of victim searches: for how many gangs victims are searched in one cycle.
//!
//! A search is the most expensive thing a cycle does, so searches are bounded. A gang that asks for the same as one
//! whose search failed is not searched for again. A part of the budget goes to gangs anywhere in the queue, different
//! ones in every second: gangs in front must not keep the rest from ever being searched for.

use std::cell::Cell;
use std::sync::Arc;

use muster_core::gang::{Closeness, Gang};
use muster_core::id::{QueueIdx, SigIdx};
use muster_core::plan::StopReason;
use muster_core::time::Time;
use muster_core::topology::Level;
use smallvec::SmallVec;

use crate::cycle::Cycle;

/// One search in so many is for gangs anywhere in the queue.
const SAMPLED: u32 = 4;

/// The victim searches of a cycle.
#[derive(Debug, Default)]
pub(crate) struct Searches {
    made: u32,
    /// The position in the queue of the gang being served.
    position: u64,
    failed: Vec<FailedSearch>,
    /// The latest search ended at one of its bounds.
    pub(crate) truncated: Cell<bool>,
}

/// A search that found no victims, and whether it had looked at all candidates by then.
#[derive(Debug)]
struct FailedSearch {
    key: SearchKey,
    truncated: bool,
}

/// Everything about a gang that decides which victims it can have.
#[derive(Debug, PartialEq, Eq)]
struct SearchKey {
    queue: QueueIdx,
    /// The user, where users have limits.
    user: Option<Arc<str>>,
    priority: i32,
    never_preempts: bool,
    was_rotated: bool,
    within: Option<Level>,
    roles: SmallVec<[(SigIdx, u32); 2]>,
}

impl SearchKey {
    fn of(cycle: &Cycle<'_>, gang: &Gang) -> Self {
        let world = cycle.scratch.world;
        let limited = |queue| !world.queue(queue).user_limit.is_empty();
        let by_user = world.queue_path(gang.queue).any(limited);
        let required = matches!(gang.spec.closeness, Some(Closeness::Required(_)));
        let needs = gang.spec.roles.iter().map(|role| role.min);
        Self {
            queue: gang.queue,
            user: by_user.then(|| gang.spec.user.clone()),
            priority: gang.spec.priority,
            never_preempts: gang.spec.disruption.never_preempts,
            was_rotated: matches!(gang.stop, Some(StopReason::Rotated(_))),
            within: gang.level.filter(|_| required),
            roles: gang.sigs.iter().copied().zip(needs).collect(),
        }
    }

    /// Whether a gang with this key finds victims only if one with the other key could have.
    fn is_as_hard_as(&self, other: &Self) -> bool {
        let Self { queue, user, priority, never_preempts, was_rotated, within, roles } = self;
        let as_many =
            |(mine, its): (&(SigIdx, u32), &(SigIdx, u32))| mine.0 == its.0 && mine.1 >= its.1;
        (queue, user, was_rotated, within)
            == (&other.queue, &other.user, &other.was_rotated, &other.within)
            && *priority <= other.priority
            && *never_preempts >= other.never_preempts
            && roles.len() == other.roles.len()
            && roles.iter().zip(&other.roles).all(as_many)
    }
}

/// Whether victims may be searched for a gang.
pub(crate) enum MaySearch {
    Yes,
    /// The search would fail, as it did for another gang; or the budget is spent.
    No {
        truncated: bool,
    },
}

impl Searches {
    /// The next gang of the queue is served.
    pub(crate) fn next_gang(&mut self) {
        self.position += 1;
    }

    /// Whether the gang is among those that are searched for wherever they are in the queue, in this second.
    fn is_sampled(&self, now: Time, waiting: u64, sampled: u64) -> bool {
        let waiting = waiting.max(1);
        let second = now.0.unsigned_abs() / 1_000 % waiting;
        let from = second * sampled % waiting;
        (self.position + waiting - from) % waiting < sampled
    }
}

impl Cycle<'_> {
    /// Whether a search may succeed and is within the budget. If so it is counted.
    pub(crate) fn may_search(&mut self, gang: &Gang) -> MaySearch {
        let key = SearchKey::of(self, gang);
        let before = self.searches.failed.iter().find(|other| key.is_as_hard_as(&other.key));
        if let Some(before) = before {
            return MaySearch::No { truncated: before.truncated };
        }
        let most = self.policy.searches;
        let sampled = most / SAMPLED;
        let waiting = self.scratch.world.waiting().len() as u64;
        let is_sampled = || self.searches.is_sampled(self.now, waiting, u64::from(sampled));
        let made = self.searches.made;
        if made >= most || (made >= most - sampled && !is_sampled()) {
            return MaySearch::No { truncated: true };
        }
        self.searches.made += 1;
        MaySearch::Yes
    }

    /// Notes that no victims were found for a gang.
    pub(crate) fn note_failed_search(&mut self, gang: &Gang, truncated: bool) {
        let key = SearchKey::of(self, gang);
        self.searches.failed.push(FailedSearch { key, truncated });
    }
}
