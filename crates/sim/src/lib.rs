//! The simulator: a host in virtual time.
//!
//! Read in this order: what a job is and where jobs come from (recorded traces, synthetic workloads), how
//! clouds behave, the host that puts it all in motion, where time and money went, what it came to, and what happens when
//! everything goes wrong.

pub mod job;
pub mod trace;
pub mod workload;

pub mod cloud;

pub mod agenda;
mod barrier;
pub mod host;

pub mod meter;

pub mod accounts;
pub mod naive;
pub mod packing;
pub mod record;
pub mod report;
pub mod summary;

pub mod faults;

pub use host::{Setup, Sim, SimOptions, Step};
pub use job::Job;
pub use summary::Summary;
