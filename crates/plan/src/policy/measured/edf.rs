//! Earliest deadline first.

use muster_core::gang::Gang;
use muster_core::time::Time;

use crate::order::rank::View;
use crate::policy::parameters::Discipline;

/// By deadline; whoever has none comes after all who have.
pub(crate) struct Edf;

impl Discipline for Edf {
    fn rank(&self, _: &View<'_>, gang: &Gang) -> Option<f64> {
        Some(gang.spec.deadline.map_or(f64::INFINITY, Time::as_secs_f64))
    }
}
