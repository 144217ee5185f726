//! A job: what a trace or a generated workload says about one gang.

use muster_core::gang::GangSpec;
use muster_core::time::{Span, Time};

/// A gang, when it arrives, and how long it truly runs.
///
/// The planner sees only the gang; `run` is the simulator's secret, as it is in life.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Job {
    /// What is submitted.
    pub gang: GangSpec,
    /// When it is submitted.
    pub submit: Time,
    /// How long it runs with every role at its `max`; an elastic gang that runs with fewer takes longer.
    pub run: Span,
}

impl Job {
    /// How long it runs with this many members: twice as long with half of them.
    pub(crate) fn run_with(&self, members: u32) -> Span {
        let most: u64 = self.gang.roles.iter().map(|role| u64::from(role.max)).sum();
        Span(self.run.0.saturating_mul(most) / u64::from(members).max(1))
    }
}
