//! Planning without verdicts gives the same decisions.

use muster_core::time::Time;
use muster_plan::{Policy, QueueOrder};
use muster_sim::workload::Preset;
use muster_sim::{Setup, Sim, SimOptions};
use muster_testkit::build;

/// When each job of a generated workload starts.
fn starts(order: QueueOrder, explain: bool, seed: u64) -> Vec<Option<Time>> {
    let mut spec = Preset::Mixed.spec();
    (spec.jobs, spec.gpus_per_member) = (120, 8);
    let rack = |i: u32| format!("r{}", i / 8);
    let node =
        |i: u32| build::node(&format!("n{i}"), 8, &[("topology.muster.sh/rack", rack(i).as_str())]);
    let mut setup = Setup {
        jobs: spec.generate(seed).expect("a sound workload"),
        nodes: (0..24).map(node).collect(),
        ..Setup::default()
    };
    for job in &mut setup.jobs {
        job.gang.queue = "default".into();
    }
    let policy = Policy { order, explain, ..Policy::default() };
    let mut sim = Sim::new(setup, policy, SimOptions::default()).expect("a well-formed stage");
    sim.run(Time::MAX);
    sim.accounts().outcomes().iter().map(|outcome| outcome.started).collect()
}

#[test]
fn decisions_are_the_same_with_and_without_verdicts() {
    for (name, order) in QueueOrder::NAMES {
        for seed in 0..4 {
            let (told, silent) = (starts(order, true, seed), starts(order, false, seed));
            assert!(told.iter().flatten().count() > 60, "{name}, seed {seed}: most can run");
            assert_eq!(told, silent, "{name}, seed {seed}");
        }
    }
}
