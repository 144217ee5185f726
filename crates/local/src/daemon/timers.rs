//! What will happen by itself, and when.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use muster_core::id::ClaimId;
use muster_core::time::Time;
use muster_sim::cloud::Stage;

/// Something that is due at some instant.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Timer {
    /// The planner asked to be woken.
    Wake,
    /// A gang is to be submitted, if it is still this one.
    Submit(Arc<str>, i64),
    /// A simulated machine gets so far.
    Stage(ClaimId, Stage),
    /// A simulated machine that was given back is gone.
    Gone(ClaimId),
    /// A simulated machine that was told to stop has stopped.
    Stopped(ClaimId),
    /// A simulated machine in service fails.
    Fails(ClaimId),
    /// The forecaster wants to look.
    Forecast,
}

/// Everything that is due, the next first; what is due together, in the order it was added.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Time, u64)>>,
    waiting: std::collections::BTreeMap<u64, Timer>,
    added: u64,
}

impl Timers {
    pub(crate) fn add(&mut self, at: Time, timer: Timer) {
        self.added += 1;
        self.heap.push(Reverse((at, self.added)));
        self.waiting.insert(self.added, timer);
    }

    pub(crate) fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    pub(crate) fn due(&mut self, now: Time) -> Option<Timer> {
        self.next().filter(|at| *at <= now)?;
        let Reverse((_, number)) = self.heap.pop()?;
        self.waiting.remove(&number)
    }
}
