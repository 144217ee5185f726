//! EASY with shortest-job-first backfill: small holes are filled with what fits them best.

use muster_core::World;
use muster_core::gang::Gang;
use muster_core::time::Time;

use super::Discipline;
use crate::predict::{Belief, duration};

/// By age, with backfill of the shortest first.
pub(super) struct EasySjbf;

impl Discipline for EasySjbf {
    fn rank(&self, _: &World, _: &Gang, _: Time) -> f64 {
        0.0
    }
    fn backfill_rank(&self, _: &World, gang: &Gang, _: Time) -> Option<f64> {
        Some(duration(gang, Belief::Estimate).as_secs_f64())
    }
}
