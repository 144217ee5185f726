//! WFP3, as run on large machines: how long a gang has waited for its length, cubed, times its size.

use muster_core::World;
use muster_core::gang::Gang;
use muster_core::time::Time;

use super::Discipline;
use crate::predict::{Belief, duration};

/// By `(wait / estimate)^3 * members`, highest first.
pub(super) struct Wfp;

impl Discipline for Wfp {
    fn rank(&self, _: &World, gang: &Gang, now: Time) -> f64 {
        let wait = now.since(gang.submitted).as_secs_f64();
        let estimate = duration(gang, Belief::Estimate).as_secs_f64().max(1.0);
        let members: u32 = gang.spec.roles.iter().map(|role| role.min).sum();
        -(wait / estimate).powi(3) * f64::from(members)
    }
}
