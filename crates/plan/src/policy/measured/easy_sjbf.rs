//! EASY with shortest-job-first backfill: holes are filled with the shortest gangs first.

use muster_core::gang::Gang;

use crate::order::View;
use crate::policy::Discipline;

/// By age, with backfill of the shortest first.
pub(in crate::policy) struct EasySjbf;

impl Discipline for EasySjbf {
    fn backfill_rank(&self, _: &View<'_>, gang: &Gang) -> Option<f64> {
        Some(gang.spec.estimated_with_min().as_secs_f64())
    }
}
