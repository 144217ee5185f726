//! The jobs of a trace as gangs, some of them elastic.
//!
//! A job of up to 8 GPUs is a gang of members with one GPU each, on one node if possible; a larger one has members of
//! 8 GPUs. The rigid gang has as many members as the trace says. The elastic one has the same members, can run with fewer
//! and use more, and at the size of the trace it takes as long as the trace says.

use std::collections::BTreeMap;

use muster_core::device::{GpuRequest, WHOLE};
use muster_core::gang::{Closeness, GangSpec, Request, RoleSpec};
use muster_core::resource::{CPU, MEMORY};
use muster_core::time::Span;
use muster_core::topology::NODE_LEVEL;
use muster_core::work::Scaling;
use muster_sim::Job;
use muster_testkit::build;

use crate::elastic::cluster::NODE;

/// Which gangs are elastic, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elasticity {
    pub(crate) seed: u64,
    /// The part of all gangs.
    pub(crate) part: f64,
    /// The minimum is the rigid size divided by this.
    pub(crate) shrinks: u32,
    /// The maximum is the rigid size times this.
    pub(crate) grows: u32,
    pub(crate) efficiency: u16,
    pub(crate) resize: Span,
    /// The error of users' estimates of run times.
    pub(crate) error: f64,
}

/// GPUs that a job of a trace requests.
pub(crate) fn gpus_of(job: &Job) -> u32 {
    let milli: u64 = job.gang.roles.iter().map(|r| r.request.gpu_milli() * u64::from(r.min)).sum();
    (milli / u64::from(WHOLE)) as u32
}

/// The same jobs, in the same order, as gangs of which a part is elastic.
pub(crate) fn gangs(jobs: &[Job], how: &Elasticity) -> Vec<Job> {
    let mut drawn: Vec<usize> = (0..jobs.len()).collect();
    drawn.sort_unstable_by_key(|at| mixed(how.seed, *at as u64));
    let elastic = (how.part * jobs.len() as f64).round() as usize;
    let mut is_elastic = vec![false; jobs.len()];
    drawn.into_iter().take(elastic).for_each(|at| is_elastic[at] = true);
    let both = jobs.iter().zip(is_elastic).enumerate();
    both.map(|(at, (job, is_elastic))| gang(at, job, is_elastic, how)).collect()
}

fn gang(at: usize, job: &Job, is_elastic: bool, how: &Elasticity) -> Job {
    let gpus = gpus_of(job);
    let (size, each) = if gpus <= NODE { (gpus, 1) } else { (gpus / NODE, NODE) };
    let (min, max) =
        if is_elastic { ((size / how.shrinks).max(1), size * how.grows) } else { (size, size) };
    let scaling = Scaling { efficiency: how.efficiency, resize: how.resize };
    let run = Span::from_secs_f64(job.run.as_secs_f64() * scaling.speed(size, max));
    let said = Span::from_secs_f64(run.as_secs_f64() * (how.error * deviate(how.seed, at)).exp());
    let gang = GangSpec {
        roles: vec![role(min, max, each as u16)],
        closeness: (each < NODE).then(|| Closeness::Preferred(NODE_LEVEL.into())),
        expected_duration: Some(said),
        scaling,
        ..job.gang.clone()
    };
    Job::new(gang, job.submit, run)
}

/// Members with so many GPUs, and a GPU's part of their node's cores and memory.
fn role(min: u32, max: u32, gpus: u16) -> RoleSpec {
    let amounts = BTreeMap::from([
        (CPU.into(), u64::from(gpus) * 8_000),
        (MEMORY.into(), u64::from(gpus) * (64 << 30)),
    ]);
    let gpu = Some(GpuRequest { resource: build::GPU.into(), count: gpus, share: WHOLE });
    let request = Request { amounts, gpu };
    RoleSpec {
        name: "worker".into(),
        min,
        max,
        request,
        constraints: Default::default(),
        spread: Vec::new(),
    }
}

/// A pseudo-random number, the same on every machine (splitmix64).
fn mixed(seed: u64, at: u64) -> u64 {
    let mut z = seed
        .wrapping_mul(0xd134_2543_de82_ef95)
        .wrapping_add(at)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A standard normal deviate, by Box and Muller.
fn deviate(seed: u64, at: usize) -> f64 {
    let part = |of: u64| (mixed(seed ^ of, at as u64) >> 11) as f64 / (1_u64 << 53) as f64;
    let (radius, turn) = (part(0x5eed), part(0xfeed));
    (-2.0 * (1.0 - radius).ln()).sqrt() * (std::f64::consts::TAU * turn).cos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_core::time::Time;

    const HOW: Elasticity = Elasticity {
        seed: 1,
        part: 0.5,
        shrinks: 2,
        grows: 4,
        efficiency: 900,
        resize: Span::secs(30),
        error: 0.0,
    };

    fn trace() -> Vec<Job> {
        let job = |at: usize| {
            let (members, gpus) = [(1, 1), (1, 8), (2, 8), (8, 8)][at % 4];
            Job::new(build::gang(&format!("job-{at}"), members, gpus), Time::ZERO, Span::hours(1))
        };
        (0..100).map(job).collect()
    }

    #[test]
    fn half_of_the_gangs_are_elastic_and_as_fast_as_rigid_at_the_same_size() {
        let jobs = trace();
        let gangs = gangs(&jobs, &HOW);
        assert_eq!(gangs.iter().filter(|job| !job.gang.is_rigid()).count(), 50);
        for (job, gang) in jobs.iter().zip(&gangs) {
            let role = &gang.gang.roles[0];
            let gpus = gpus_of(job);
            let size = if gpus <= NODE { gpus } else { gpus / NODE };
            if gang.gang.is_rigid() {
                assert_eq!((role.max, gang.run), (size, job.run));
                continue;
            }
            assert_eq!((role.min, role.max), ((size / 2).max(1), 4 * size));
            let at_size = gang.run.as_secs_f64() / gang.gang.scaling.speed(size, role.max);
            assert!((at_size - job.run.as_secs_f64()).abs() < 0.01, "{at_size}");
        }
    }

    #[test]
    fn another_seed_makes_another_half_elastic() {
        let rigid = |seed| -> Vec<bool> {
            let gangs = gangs(&trace(), &Elasticity { seed, ..HOW });
            gangs.iter().map(|job| job.gang.is_rigid()).collect()
        };
        assert_eq!(rigid(1), rigid(1));
        assert_ne!(rigid(1), rigid(2));
    }
}
