//! The outcome of every job, beside the meter; from facts alone.

use muster_core::Fact;
use muster_core::id::GangId;
use muster_core::order::RollbackReason;
use muster_core::plan::StopReason;
use muster_core::pool::PoolSpec;
use muster_core::time::{Span, Time};
use rustc_hash::FxHashMap;

use crate::accounts::meter::Meter;

/// The outcome of one job.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// When it entered its queue; none if it was refused or never submitted.
    pub submitted: Option<Time>,
    /// When all its members started, the last time they did.
    pub started: Option<Time>,
    /// When its work was done.
    pub ended: Option<Time>,
    /// From the first member's start to the last one's, the last time they started.
    pub spread: Span,
    /// GPU time members ran while others of their gang had not started yet, in milliseconds.
    pub partial_gpu_ms: u64,
    /// Times it had to start over.
    pub restarts: u32,
    /// Times it was evicted or moved.
    pub evictions: u32,
    /// Times it was resized while it ran.
    pub resizes: u32,
    /// Orders placed for it.
    pub orders: u32,
    /// Orders rolled back.
    pub rollbacks: u32,
}

impl Outcome {
    /// From submission to the end.
    pub fn completion(&self) -> Option<Span> {
        Some(self.ended?.since(self.submitted?))
    }
    /// From submission to the start that led to the end.
    pub fn wait(&self) -> Option<Span> {
        Some(self.started?.since(self.submitted?))
    }
}

/// Outcomes of jobs, and the meter.
#[derive(Clone, Debug)]
pub struct Accounts {
    outcomes: Vec<Outcome>,
    job_of: FxHashMap<GangId, usize>,
    meter: Meter,
    /// Orders placed.
    pub orders: u64,
    /// Orders rolled back, or sets of nodes given up by a host without orders.
    pub rollbacks: u64,
}

impl Accounts {
    pub fn new(pools: Vec<PoolSpec>, jobs: usize) -> Self {
        Self {
            outcomes: vec![Outcome::default(); jobs],
            job_of: FxHashMap::default(),
            meter: Meter::new(pools),
            orders: 0,
            rollbacks: 0,
        }
    }
    /// The outcome of each job, in the order of the workload.
    pub fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }
    /// Where time and money went.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    pub fn submitted(&mut self, gang: GangId, job: usize, now: Time) {
        self.job_of.insert(gang, job);
        self.outcomes[job].submitted = Some(now);
    }

    pub fn note(&mut self, now: Time, fact: &Fact) {
        let start = self.meter.note(now, fact);
        match fact {
            Fact::OrderPlaced { gang, .. } => {
                self.orders += 1;
                self.with_job(*gang, |outcome| outcome.orders += 1);
            }
            // A gang that starts sooner elsewhere has lost nothing.
            Fact::OrderRolledBack { reason: RollbackReason::NotNeeded, .. } => {}
            Fact::OrderRolledBack { gang, .. } => {
                self.rollbacks += 1;
                self.with_job(*gang, |outcome| outcome.rollbacks += 1);
            }
            Fact::GangStarted { gang } => self.with_job(*gang, |outcome| {
                outcome.started = Some(now);
                if let Some(start) = start {
                    outcome.spread = start.spread;
                    outcome.partial_gpu_ms += start.wasted_gpu_ms;
                }
            }),
            Fact::GangEnded { gang } => {
                self.with_job(*gang, |outcome| outcome.ended = Some(now));
                self.job_of.remove(gang);
            }
            Fact::GangStopped { gang, reason } => self.with_job(*gang, |outcome| {
                outcome.restarts += 1;
                outcome.evictions += u32::from(reason.is_eviction());
            }),
            Fact::GangResized { gang } => self.with_job(*gang, |outcome| outcome.resizes += 1),
            _ => {}
        }
    }

    /// A gang paused for so long.
    pub(crate) fn paused(&mut self, gang: GangId, span: Span) {
        self.meter.paused(gang, span);
    }
    /// The last `worked` of a gang is lost.
    pub(crate) fn lost(&mut self, gang: GangId, worked: Span, why: Option<StopReason>) {
        self.meter.lost(gang, worked, why);
    }

    /// Counts all that still runs until now. More facts may follow.
    pub fn close(&mut self, now: Time) {
        self.meter.count_until(now);
    }

    fn with_job(&mut self, gang: GangId, change: impl FnOnce(&mut Outcome)) {
        if let Some(job) = self.job_of.get(&gang) {
            change(&mut self.outcomes[*job]);
        }
    }
}
