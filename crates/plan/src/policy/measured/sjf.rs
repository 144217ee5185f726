//! Shortest job first: the best mean wait, at the expense of long gangs.

use muster_core::gang::Gang;

use crate::order::View;
use crate::policy::Discipline;

/// By estimated duration.
pub(in crate::policy) struct Sjf;

impl Discipline for Sjf {
    fn rank(&self, _: &View<'_>, gang: &Gang) -> Option<f64> {
        Some(gang.spec.estimated_with_min().as_secs_f64())
    }
}
