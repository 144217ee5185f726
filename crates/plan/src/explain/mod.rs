//! Explain decisions: why a gang waits or cannot run, when it is expected to start, and what would start it now.

pub(crate) mod verdicts;

mod expected_starts;
mod what_if;

pub(crate) use expected_starts::{expected_starts, late_by};
pub(crate) use what_if::helps;
pub use what_if::{Why, why};
