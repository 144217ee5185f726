//! The sentences and figures that users read: verdicts, stops, rollbacks, targets, durations, counts.
//!
//! All hosts and the CLI use these, so that the same verdict has the same words everywhere.

mod verdicts;

pub mod figures;

pub use verdicts::{gang, gangs, kept, rollback, stop, target, verdict};
