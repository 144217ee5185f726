//! Jobs in a report: the unit of capacity, the demand of a job, and its run.

pub(super) mod capacity;
pub(super) mod demand;
pub(super) mod job_run;

pub use capacity::Measure;
