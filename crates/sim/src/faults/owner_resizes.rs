//! Draws resizes of gangs by their owners.
//!
//! They have random numbers of their own, so that a scenario without them does not change. No gang becomes larger than it
//! was drawn, so that it stays feasible.

use std::sync::Arc;

use muster_core::time::Time;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::host::{Setup, SimEvent};

/// Their random stream.
const STREAM: u64 = 9;

/// Lets owners resize some gangs of half of all scenarios, some of them again and again.
pub(crate) fn draw(
    seed: u64,
    setup: &Setup,
    infeasible: &[Arc<str>],
    faults: &mut Vec<(Time, SimEvent)>,
    storm_ends: Time,
) {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(STREAM);
    let jobs = setup.jobs.iter().enumerate();
    let jobs: Vec<_> = jobs.filter(|(_, job)| !infeasible.contains(&job.gang.name)).collect();
    if rng.random_bool(0.5) || jobs.is_empty() {
        return;
    }
    for _ in 0..rng.random_range(1..=8) {
        let (at, job) = jobs[rng.random_range(0..jobs.len())];
        let role = rng.random_range(0..job.gang.roles.len());
        let (least, most) = (job.gang.roles[role].min, job.gang.roles[role].max);
        for _ in 0..rng.random_range(1..=4) {
            let min = rng.random_range(1..=least);
            let max = if rng.random_bool(0.5) { min } else { rng.random_range(min..=most) };
            let from = job.submit.0.min(storm_ends.0 - 1);
            let when = Time(rng.random_range(from..storm_ends.0));
            faults.push((when, SimEvent::OwnerResizes(at, role as u16, (min, max))));
        }
    }
}
