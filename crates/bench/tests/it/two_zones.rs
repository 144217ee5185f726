//! A pool in two zones and jobs of one gang, as the simulator's own scenarios have them.

use muster_core::gang::GangSpec;
use muster_core::order::ClaimFailure;
use muster_core::pool::PoolLimits;
use muster_core::queue::QueueSpec;
use muster_core::time::{Span, Time};
use muster_sim::cloud::{CloudModel, Scripted};
use muster_sim::{Job, Setup};
use muster_testkit::build;

/// A cloud whose machines take exactly their boot time, with these scripted failures.
pub(crate) fn exact_cloud(script: &[(&str, u32, ClaimFailure)]) -> CloudModel {
    let line = |(zone, claim, fails): &(&str, u32, ClaimFailure)| Scripted {
        zone: (*zone).into(),
        claim: *claim,
        fails: *fails,
    };
    CloudModel { sigma: 0.0, script: script.iter().map(line).collect(), ..CloudModel::default() }
}

/// Zones `a` (10 per hour) and `b` (12 per hour) with 8-GPU nodes that boot in three minutes.
pub(crate) fn two_zones(nodes: u32, model: CloudModel) -> Setup {
    let mut pool = build::pool("gpu", vec![build::offering("a", 10.0), build::offering("b", 12.0)]);
    pool.limits = PoolLimits { nodes: Some(nodes), ..PoolLimits::default() };
    Setup {
        queues: vec![QueueSpec::open("default")],
        pools: vec![(pool, model)],
        ..Setup::default()
    }
}

/// A job of one gang.
pub(crate) fn job(gang: GangSpec, submit_s: u64, run_s: u64) -> Job {
    Job::new(gang, Time::ZERO + Span::secs(submit_s), Span::secs(run_s))
}
