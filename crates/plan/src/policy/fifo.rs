//! First come, first served.

use muster_core::World;
use muster_core::gang::Gang;
use muster_core::time::Time;

use super::{Behind, Discipline};

/// By age, strictly or not.
pub(super) struct Fifo {
    /// Whether those behind a waiting gang may take what it waits for.
    pub(super) overtake: bool,
}

impl Discipline for Fifo {
    fn rank(&self, _: &World, _: &Gang, _: Time) -> f64 {
        0.0
    }
    fn behind(&self) -> Behind {
        if self.overtake { Behind::Free } else { Behind::Barred }
    }
}
