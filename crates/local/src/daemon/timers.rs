//! Timers of the control plane.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use muster_core::id::ClaimId;
use muster_core::time::Time;
use muster_sim::cloud::Stage;

/// What happens when a timer fires.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Timer {
    /// The planner runs again.
    Wake,
    /// A gang is submitted, if it is still the same gang.
    Submit(Arc<str>, i64),
    /// A simulated machine reaches a stage.
    Stage(ClaimId, Stage),
    /// A released simulated machine is gone.
    Gone(ClaimId),
    /// A simulated machine has stopped.
    Stopped(ClaimId),
    /// A simulated machine in service fails.
    Fails(ClaimId),
    /// The forecaster runs.
    Forecast,
}

/// All pending timers, by time; timers of the same time fire in the order they were added.
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
