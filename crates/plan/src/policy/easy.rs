//! EASY backfilling: first come, first served, with a start time for the first that must wait.

use muster_core::World;
use muster_core::gang::Gang;
use muster_core::time::Time;

use super::Discipline;

/// By age, with backfill in the same order.
pub(super) struct Easy;

impl Discipline for Easy {
    fn rank(&self, _: &World, _: &Gang, _: Time) -> f64 {
        0.0
    }
}
