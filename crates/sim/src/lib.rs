//! The simulator: a discrete-event host that runs the planner in virtual time.
//!
//! Read in this order: jobs and where they come from (recorded traces, synthetic workloads), simulated clouds, the host
//! that runs them with the planner, accounting of time and money, reports, recordings, two baselines, and random fault
//! runs.

pub mod job;
pub mod trace;
pub mod workload;

pub mod cloud;

pub mod event_queue;
pub mod host;

pub mod accounts;
pub mod report;

pub mod record;

pub mod naive;
pub mod packing;

pub mod faults;

pub use accounts as meter;
pub use host::{Setup, Sim, SimOptions, Step};
pub use job::Job;
pub use report::summary;
pub use report::summary::Summary;
