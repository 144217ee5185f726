//! One job in one run.

use muster_core::time::{Span, Time};

use crate::accounts::Outcome;
use crate::report::demand::Demand;
use crate::report::summary::bounded_slowdown;

/// The outcome of one job, and its demand.
///
/// A job that had to start over counts as waiting until its last start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobRun {
    pub(crate) asked: Demand,
    pub(crate) submitted: Option<Time>,
    pub(crate) started: Option<Time>,
    pub(crate) ended: Option<Time>,
}

impl JobRun {
    pub(crate) fn new(asked: Demand, outcome: &Outcome) -> Self {
        let Outcome { submitted, started, ended, .. } = *outcome;
        Self { asked, submitted, started, ended }
    }

    /// Seconds from submission to start, of a job that ended.
    pub(crate) fn wait_s(&self) -> Option<f64> {
        self.ended?;
        Some(self.started?.since(self.submitted?).as_secs_f64())
    }

    /// How many times longer it took than it runs, of a job that ended; bounded for short ones.
    pub(crate) fn slowdown(&self) -> Option<f64> {
        let (wait, run) = (self.wait_s()?, self.asked.run.as_secs_f64());
        Some(bounded_slowdown(wait, run))
    }

    /// When it ran and with how much; one that still runs does so until `now`.
    pub(crate) fn run(&self, now: Time) -> Option<(Time, Time, u64)> {
        let started = self.started?;
        Some(match self.ended {
            Some(ended) => (started, ended, self.asked.size(ended.since(started))),
            None => (started, now.max(started), self.asked.least),
        })
    }

    /// Capacity times milliseconds it used.
    pub(crate) fn used(&self, now: Time) -> u128 {
        let run = self.run(now);
        run.map_or(0, |(from, to, size)| u128::from(size) * u128::from(to.since(from).0))
    }
}

/// Capacity times milliseconds, in whole units times hours.
pub(crate) fn hours(used: u128) -> f64 {
    used as f64 / 1_000.0 / Span::hours(1).0 as f64
}
