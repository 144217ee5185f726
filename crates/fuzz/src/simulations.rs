//! Valid manifests, simulated: for any manifest the World and the planner neither panic nor break a promise.

use muster_api::{Manifests, read_texts};
use muster_core::queue::parents_first;
use muster_core::time::{Span, Time};
use muster_local::cloud_of;
use muster_plan::Policy;
use muster_sim::{Job, Setup, Sim, SimOptions};

use crate::Target;

/// Sizes up to which an input is simulated: larger ones are slow, and no different.
const MOST_NODES: usize = 64;
const MOST_GANGS: usize = 12;
const MOST_MEMBERS: u64 = 2_000;
/// Instants that are simulated.
const STEPS: u32 = 60;
/// When a simulation begins, so that an input means the same tomorrow: 2026-12-01T08:00:00Z.
const BEGIN: Time = Time(1_796_112_000_000);

pub(crate) const TARGET: Target = Target {
    name: "simulations",
    run,
    words: &[
        "min: ",
        "max: ",
        "count: ",
        "priority: ",
        "preemptible: false",
        "queue: ",
        "deadline: 2026-12-01T08:00:01Z",
        "costOfWaiting: ",
        "expectedDuration: ",
        "1ms",
        "10000w",
        "minRuntime: ",
        "grace: ",
        "weight: ",
        "guaranteed: {nvidia.com/gpu: 8}",
        "limit: {nvidia.com/gpu: 1}",
        "nvidia.com/gpu: ",
        "cpu: ",
        "memory: ",
        "9E",
        "9223372036854775807",
        "1000000",
        "0.001",
        "500m",
        "0",
        "submitAfter: ",
        "runTime: ",
        "attempts: ",
        "timeout: ",
        "warm: ",
        "price: ",
        "borrow: ",
        "timeSlice: ",
        "halfLife: ",
    ],
    rounds: 1_500,
};

fn run(data: &[u8]) {
    let Ok(manifests) = read_texts(&[("a.yaml", data)]) else { return };
    if !is_small(&manifests) {
        return;
    }
    let options = SimOptions { seed: 1, check: true, ..SimOptions::default() };
    let Ok(mut sim) = Sim::new(setup(manifests), Policy::default(), options) else { return };
    for _ in 0..STEPS {
        if !sim.step() {
            break;
        }
        assert!(sim.violations().is_empty(), "{:?}", sim.violations());
    }
}

fn is_small(manifests: &Manifests) -> bool {
    let roles = manifests.gangs.iter().flat_map(|gang| &gang.spec.roles);
    let members: u64 = roles.map(|role| u64::from(role.max)).sum();
    manifests.nodes.len() <= MOST_NODES
        && manifests.gangs.len() <= MOST_GANGS
        && manifests.pools.len() <= MOST_GANGS
        && members <= MOST_MEMBERS
}

fn setup(manifests: Manifests) -> Setup {
    let Manifests { levels, queues, pools, nodes, gangs, warnings: _ } = manifests;
    let jobs = gangs.into_iter().map(|gang| {
        let mut spec = gang.spec;
        spec.deadline = spec.deadline.map(|at| Time::ZERO + at.since(BEGIN));
        let run = gang.run_time.or(spec.expected_duration).unwrap_or(Span::mins(10));
        Job::new(spec, Time::ZERO + gang.submit_after, run)
    });
    Setup {
        levels,
        queues: parents_first(queues, |queue| queue),
        pools: pools.into_iter().map(cloud_of).collect(),
        nodes,
        jobs: jobs.collect(),
        epoch: BEGIN.0,
        ..Setup::default()
    }
}
