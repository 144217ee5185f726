//! A report: several runs of one workload as plain figures, ready to be drawn.
//!
//! Everything is computed from the requests and the outcomes of jobs. Nothing here knows how a table or a chart looks, and
//! nothing here reads the World.
//!
//! Read in this order: the summary of one run, collecting runs, what a report consists of, jobs (their demand and their
//! outcome), and the figures by topic.

pub mod summary;

mod collect;
mod raw_run;
mod runs;

mod capacity;
mod demand;
mod job;

mod fairness;
mod figures;
mod sizes;
mod timeline;

mod stats;

#[cfg(test)]
mod tests;

pub use capacity::Measure;
pub use collect::Gather;
pub use fairness::{By, Shares, Slowdowns, jain};
pub use figures::Figures;
pub use runs::{Report, Run, Stage, WAIT_FROM_S};
pub use sizes::SizeClass;
pub use stats::{Curve, Five, Grid, Top};
pub use timeline::Timeline;
