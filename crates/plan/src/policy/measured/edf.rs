//! Earliest deadline first.

use muster_core::gang::Gang;
use muster_core::time::Time;

use crate::order::View;
use crate::policy::Discipline;

/// By deadline; gangs without one come last.
pub(in crate::policy) struct Edf;

impl Discipline for Edf {
    fn rank(&self, _: &View<'_>, gang: &Gang) -> Option<f64> {
        Some(gang.spec.deadline.map_or(f64::INFINITY, Time::as_secs_f64))
    }
}
