//! Large gangs against an endless stream of small ones: no gang starves, under any order that promises it.

use muster_core::queue::QueueSpec;
use muster_core::time::{Span, Time};
use muster_plan::{Policy, QueueOrder};
use muster_sim::{Setup, Sim, SimOptions};
use muster_testkit::build;

use crate::two_zones::job;

const NODES: u32 = 32;

/// Small gangs that fill nearly the whole cluster for ever, and every six hours one that needs all of it.
fn stream(hours: u64) -> Setup {
    let mut jobs = Vec::new();
    for i in 0..hours * 60 {
        let mut gang = build::gang(&format!("small-{i}"), 1, 8);
        gang.user = format!("user-{}", i % 7).into();
        gang.expected_duration = Some(Span::mins(40));
        jobs.push(job(gang, i * 60, (20 + i % 19) * 60));
    }
    for i in 0..hours / 6 {
        let mut gang = build::gang(&format!("large-{i}"), NODES, 8);
        gang.user = "large".into();
        gang.expected_duration = Some(Span::mins(20));
        jobs.push(job(gang, i * 6 * 3_600, 15 * 60));
    }
    Setup {
        queues: vec![QueueSpec::open("default")],
        nodes: (0..NODES).map(|i| build::node(&format!("n{i}"), 8, &[])).collect(),
        jobs,
        ..Setup::default()
    }
}

/// The longest any large gang waited, or has waited when the stream ends.
fn longest_wait(sim: &Sim, until: Time) -> Span {
    let large = sim.jobs().iter().zip(sim.accounts().outcomes());
    let large = large.filter(|(job, _)| job.gang.name.starts_with("large"));
    large
        .filter_map(|(_, outcome)| Some(outcome.started.unwrap_or(until).since(outcome.submitted?)))
        .max()
        .expect("there are large ones")
}

#[test]
fn large_gangs_start_within_the_bound_of_each_order() {
    let hours = 30;
    // The longest gang is said to take 40 minutes; with reservations a large one waits for those that run.
    // Where gangs must become due first, it waits for up to an hour more.
    let cases = [
        (QueueOrder::Easy, Span::mins(60)),
        (QueueOrder::EasySjbf, Span::mins(60)),
        (QueueOrder::Conservative, Span::mins(60)),
        (QueueOrder::Fifo, Span::mins(60)),
        (QueueOrder::Fair, Span::mins(60)),
        (QueueOrder::Muster, Span::mins(120)),
    ];
    for (order, bound) in cases {
        let options = SimOptions { check: true, ..SimOptions::default() };
        let explain = order == QueueOrder::Fifo;
        let policy = Policy { order, explain, ..Policy::default() };
        let mut sim = Sim::new(stream(hours), policy, options).expect("a well-formed stage");
        let until = Time::ZERO + Span::hours(hours);
        sim.run(until);
        assert_eq!(sim.violations(), [], "{}: promises are kept", order.name());
        let longest = longest_wait(&sim, until);
        assert!(longest <= bound, "{}: a large gang waited {longest}", order.name());
    }
}

#[test]
fn large_gangs_starve_without_a_guard() {
    let policy = Policy { order: QueueOrder::FifoOvertake, explain: false, ..Policy::default() };
    let mut sim = Sim::new(stream(48), policy, SimOptions::default()).expect("a well-formed stage");
    let until = Time::ZERO + Span::hours(48);
    sim.run(until);
    assert!(longest_wait(&sim, until) > Span::hours(30), "the stream is what it is meant to be");
}
