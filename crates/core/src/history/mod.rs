//! What is learned from the past: run times, usage, demand, and how reliable offerings are.
//!
//! Everything here is counted from events; nothing here predicts.

mod run_times;
pub use run_times::*;

pub mod decayed_usage;

pub mod demand;
pub mod demand_mix;

pub mod health;

pub mod baseline;

pub mod remembered;
