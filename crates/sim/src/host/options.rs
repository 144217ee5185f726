//! Options of a simulation.

use crate::faults::Sabotage;
use crate::record::Recorder;

/// How many events are handled before the planner runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Step {
    /// All events of one instant; what live hosts do, and fast.
    #[default]
    Instant,
    /// One event: the planner sees every intermediate state.
    Event,
    /// One instant in the order of pyss, the simulator behind the published backfilling results.
    Pyss,
}

/// Options of a simulation.
#[derive(Debug, Default)]
pub struct SimOptions {
    /// Seed of all random numbers.
    pub seed: u64,
    /// How many events are handled before the planner runs.
    pub step: Step,
    /// Whether promises are checked after every step.
    pub check: bool,
    /// Where every event and plan is written for a replay.
    pub recorder: Option<Recorder>,
    /// Whether the planner's process may crash, so that its log must be kept.
    pub may_crash: bool,
    /// For each job, which group it belongs to: members of a group only make progress once all of them run.
    pub barrier: Option<Vec<usize>>,
    /// A planted bug that breaks a promise, to prove that the checkers detect it.
    pub sabotage: Option<Sabotage>,
    /// Check for first come, first served whatever the policy.
    pub expect_fifo: bool,
}
