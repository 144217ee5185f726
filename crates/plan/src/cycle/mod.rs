//! One scheduling cycle: the steps in order, and the state they share.

mod serve;
mod steps;

pub(crate) use serve::waiting;
pub(crate) use steps::{Cycle, can_be_promised, earliest, serve};
pub use steps::{plan, world_for};
