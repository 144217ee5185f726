//! How a simulation is run.

use crate::faults::Sabotage;
use crate::record::Recorder;

/// How much happens before the planner is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Step {
    /// Everything of one instant; what live hosts do, and fast.
    #[default]
    Instant,
    /// One happening: the planner sees every intermediate state.
    Event,
    /// One instant in the order of pyss, the simulator behind the published backfilling results.
    Pyss,
}

/// How a simulation is run.
#[derive(Debug, Default)]
pub struct SimOptions {
    /// Where randomness starts.
    pub seed: u64,
    /// How much happens before the planner is asked.
    pub step: Step,
    /// Whether promises are checked after every step.
    pub check: bool,
    /// Where every event and plan is written for a replay.
    pub recorder: Option<Recorder>,
    /// Whether the planner's process may crash, so that what it writes down must be kept.
    pub may_crash: bool,
    /// For each job, which group it belongs to: members of a group only make progress once all of them run.
    pub barrier: Option<Vec<usize>>,
    /// Break this promise on purpose, to see that it is noticed.
    pub sabotage: Option<Sabotage>,
    /// Check for first come, first served whatever the policy.
    pub expect_fifo: bool,
}
