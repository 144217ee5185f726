//! One scheduling cycle: the steps in order, and the state they share.

mod serve;
mod steps;

pub(crate) use serve::{Looked, waiting};
pub(crate) use steps::{Cycle, Served, can_be_promised, earliest, serve};
pub use steps::{plan, world_for};
