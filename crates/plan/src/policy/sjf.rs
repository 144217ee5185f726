//! Shortest job first: the best mean wait, at the expense of long gangs.

use muster_core::World;
use muster_core::gang::Gang;
use muster_core::time::Time;

use super::Discipline;
use crate::predict::{Belief, duration};

/// By estimated duration.
pub(super) struct Sjf;

impl Discipline for Sjf {
    fn rank(&self, _: &World, gang: &Gang, _: Time) -> f64 {
        duration(gang, Belief::Estimate).as_secs_f64()
    }
}
