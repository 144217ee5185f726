//! Shortest job first: the best mean wait, at the expense of long gangs.

use muster_core::gang::Gang;

use super::Discipline;
use crate::order::View;

/// By estimated duration.
pub(super) struct Sjf;

impl Discipline for Sjf {
    fn rank(&self, _: &View<'_>, gang: &Gang) -> Option<f64> {
        Some(gang.spec.said_with_least().as_secs_f64())
    }
}
