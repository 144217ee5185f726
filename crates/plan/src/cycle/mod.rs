//! One scheduling cycle: its steps in order, and the state they share.
//!
//! Read `plan` first; it calls everything else. The queue is served gang by gang: `queue` is the loop, `serve` is what
//! is done for one gang.

mod plan;

mod queue;
mod serve;

mod barred;
mod state;

mod report;

pub(crate) use plan::{Outcome, Served, decide_starts};
pub use plan::{plan, world_for};
pub(crate) use serve::waiting;
pub(crate) use state::{Cycle, can_be_promised, earliest};
