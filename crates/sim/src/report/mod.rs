//! A report: several runs of one workload as plain figures, ready to be drawn.
//!
//! Everything is computed from what jobs asked for and what became of them. Nothing here knows how a table or a
//! chart looks, and nothing here looks into the World.

mod measure;

mod asked;
mod life;

mod buckets;
mod quantile;
mod top;

mod fairness;
mod figures;
mod sizes;
mod timeline;

mod gather;
mod raw;
mod runs;

#[cfg(test)]
mod tests;

pub use buckets::Grid;
pub use fairness::{By, Shares, Slowdowns, jain};
pub use figures::Figures;
pub use gather::Gather;
pub use measure::Measure;
pub use quantile::{Curve, Five};
pub use runs::{Report, Run, Stage, WAIT_FROM_S};
pub use sizes::SizeClass;
pub use timeline::Timeline;
pub use top::Top;
