//! WFP3, as run on large machines: wait divided by estimate, cubed, times size.

use muster_core::gang::Gang;

use crate::order::View;
use crate::policy::Discipline;

/// By `(wait / estimate)^3 * members`, highest first.
pub(in crate::policy) struct Wfp;

impl Discipline for Wfp {
    fn rank(&self, view: &View<'_>, gang: &Gang) -> Option<f64> {
        let wait = view.now.since(gang.submitted).as_secs_f64();
        let estimate = gang.spec.estimated_with_min().as_secs_f64().max(1.0);
        Some(-(wait / estimate).powi(3) * f64::from(gang.spec.min_members()))
    }
}
