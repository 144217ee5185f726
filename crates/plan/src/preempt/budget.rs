//! For how many gangs it is looked for others that could make way, in one cycle.
//!
//! Looking is the dearest thing a cycle does, so it is bounded. Who asks for the same as somebody for whom it was in vain
//! is not looked for again, and a part of the searches is for gangs anywhere in line, others in every second: those in
//! front must not keep the rest from ever being looked at.

use std::sync::Arc;

use muster_core::gang::{Closeness, Gang};
use muster_core::id::{QueueIdx, SigIdx};
use muster_core::plan::StopReason;
use muster_core::time::Time;
use muster_core::topology::Level;
use smallvec::SmallVec;

use crate::cycle::Cycle;

/// One search in so many is for gangs anywhere in line.
const ELSEWHERE: u32 = 4;

/// What was looked for in a cycle.
#[derive(Debug, Default)]
pub(crate) struct Searches {
    made: u32,
    /// Whose turn it is, counted from the front.
    turn: u64,
    in_vain: Vec<InVain>,
}

/// Somebody for whom nobody was found, and whether everything had been looked at by then.
#[derive(Debug)]
struct InVain {
    asks: Asks,
    was_cut: bool,
}

/// All of a gang that decides who could make way for it.
#[derive(Debug, PartialEq, Eq)]
struct Asks {
    queue: QueueIdx,
    /// Where users have limits, whose it is counts too.
    user: Option<Arc<str>>,
    priority: i32,
    gentle: bool,
    had_its_turn: bool,
    within: Option<Level>,
    roles: SmallVec<[(SigIdx, u32); 2]>,
}

impl Asks {
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
            gentle: gang.spec.disruption.gentle,
            had_its_turn: matches!(gang.stop, Some(StopReason::Rotated(_))),
            within: gang.level.filter(|_| required),
            roles: gang.sigs.iter().copied().zip(needs).collect(),
        }
    }

    /// Whether who asks for this is helped only if the other could have been.
    fn is_as_hard_as(&self, other: &Self) -> bool {
        let Self { queue, user, priority, gentle, had_its_turn, within, roles } = self;
        let as_many =
            |(mine, its): (&(SigIdx, u32), &(SigIdx, u32))| mine.0 == its.0 && mine.1 >= its.1;
        (queue, user, had_its_turn, within)
            == (&other.queue, &other.user, &other.had_its_turn, &other.within)
            && *priority <= other.priority
            && *gentle >= other.gentle
            && roles.len() == other.roles.len()
            && roles.iter().zip(&other.roles).all(as_many)
    }
}

/// Whether it is to be looked for others on behalf of a gang.
pub(crate) enum MayLook {
    Yes,
    /// It would be in vain, as it was for another; or it may not be, and there is no time.
    No {
        spent: bool,
    },
}

impl Searches {
    /// The next in line has its turn.
    pub(crate) fn next_turn(&mut self) {
        self.turn += 1;
    }

    /// Whether it is among so many that are looked for wherever they stand, in this second.
    fn is_chosen(&self, now: Time, waiting: u64, chosen: u64) -> bool {
        let waiting = waiting.max(1);
        let second = now.0.unsigned_abs() / 1_000 % waiting;
        let from = second * chosen % waiting;
        (self.turn + waiting - from) % waiting < chosen
    }
}

impl Cycle<'_> {
    /// Whether it is worth looking, and within the bound. If so it counts as looked.
    pub(crate) fn may_look(&mut self, gang: &Gang) -> MayLook {
        let asks = Asks::of(self, gang);
        let before = self.searches.in_vain.iter().find(|other| asks.is_as_hard_as(&other.asks));
        if let Some(before) = before {
            return MayLook::No { spent: before.was_cut };
        }
        let most = self.policy.searches;
        let elsewhere = most / ELSEWHERE;
        let waiting = self.scratch.world.waiting().len() as u64;
        let is_chosen = || self.searches.is_chosen(self.now, waiting, u64::from(elsewhere));
        let made = self.searches.made;
        if made >= most || (made >= most - elsewhere && !is_chosen()) {
            return MayLook::No { spent: true };
        }
        self.searches.made += 1;
        MayLook::Yes
    }

    /// Nobody was found for a gang.
    pub(crate) fn looked_in_vain(&mut self, gang: &Gang, was_cut: bool) {
        let asks = Asks::of(self, gang);
        self.searches.in_vain.push(InVain { asks, was_cut });
    }
}
