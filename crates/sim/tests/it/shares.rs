//! Fair share over time, for queues that always have waiting gangs.

use muster_core::queue::{QueueSpec, Quota};
use muster_core::time::{Span, Time};
use muster_plan::{Policy, QueueOrder};
use muster_sim::{Job, Setup, Sim, SimOptions};
use muster_testkit::build;

use crate::two_zones::job;

/// A queue with a weight.
fn queue(name: &str, weight: u32) -> QueueSpec {
    QueueSpec { weight, ..QueueSpec::open(name) }
}

/// Jobs that are submitted at the start.
const BACKLOG: u64 = 120;

/// Jobs of one queue that arrive faster than they can ever run: sizes 1 to 4 nodes, 10 to 50 minutes.
fn flood(queue: &str, jobs: u64) -> Vec<Job> {
    (0..jobs)
        .map(|i| {
            let (size, minutes) = (1 + (i * 7 + 3) % 4, 10 + (i * 13) % 41);
            let mut gang = build::gang(&format!("{queue}-{i}"), size as u32, 8);
            gang.queue = queue.into();
            gang.user = queue.into();
            gang.expected_duration = Some(Span::mins(minutes * 2));
            job(gang, i.saturating_sub(BACKLOG) * 300, minutes * 60)
        })
        .collect()
}

fn setup(queues: Vec<QueueSpec>, nodes: u32, jobs: Vec<Job>) -> Setup {
    Setup {
        queues,
        nodes: (0..nodes).map(|i| build::node(&format!("n{i}"), 8, &[])).collect(),
        jobs,
        ..Setup::default()
    }
}

fn play(setup: Setup, order: QueueOrder, until: Span) -> Sim {
    let options = SimOptions { check: true, ..SimOptions::default() };
    let policy = Policy { order, explain: false, ..Policy::default() };
    let mut sim = Sim::new(setup, policy, options).expect("a well-formed stage");
    sim.run(Time::ZERO + until);
    assert_eq!(sim.violations(), [], "promises are kept");
    sim
}

/// GPU time each queue got from `from` to `until`, as parts of what all of them got.
fn parts(sim: &Sim, queues: &[&str], from: Span, until: Span) -> Vec<f64> {
    let (from, until) = (Time::ZERO + from, Time::ZERO + until);
    let used = |queue: &str| -> f64 {
        let mine = sim.jobs().iter().zip(sim.accounts().outcomes());
        let mine = mine.filter(|(job, _)| *job.gang.queue == *queue);
        mine.map(|(job, outcome)| {
            let Some(started) = outcome.started else { return 0.0 };
            let ended = outcome.ended.unwrap_or(until).min(until);
            let span = ended.since(started.max(from)).as_secs_f64();
            span * f64::from(job.gang.min_members())
        })
        .sum()
    };
    let all: Vec<f64> = queues.iter().map(|queue| used(queue)).collect();
    let sum: f64 = all.iter().sum();
    all.into_iter().map(|one| one / sum).collect()
}

#[test]
fn weights_one_two_three_get_a_sixth_a_third_and_a_half() {
    let names = ["one", "two", "three"];
    let queues = || vec![queue("one", 1), queue("two", 2), queue("three", 3)];
    for order in [QueueOrder::Fair, QueueOrder::Muster] {
        let jobs = names.iter().flat_map(|name| flood(name, 500)).collect();
        let until = Span::hours(40);
        let sim = play(setup(queues(), 24, jobs), order, until);
        let parts = parts(&sim, &names, Span::hours(6), until);
        for (part, due) in parts.iter().zip([1.0 / 6.0, 2.0 / 6.0, 3.0 / 6.0]) {
            assert!((part - due).abs() < 0.02, "{}: {parts:?}", order.name());
        }
    }
}

#[test]
fn tree_of_queues_shares_branch_by_branch() {
    let mut org = vec![queue("org", 3), queue("lab", 1), queue("ads", 1), queue("web", 2)];
    org[2].parent = Some("org".into());
    org[3].parent = Some("org".into());
    let names = ["lab", "ads", "web"];
    let jobs = names.iter().flat_map(|name| flood(name, 500)).collect();
    let until = Span::hours(40);
    let sim = play(setup(org, 24, jobs), QueueOrder::Muster, until);
    let parts = parts(&sim, &names, Span::hours(6), until);
    for (part, due) in parts.iter().zip([0.25, 0.25, 0.5]) {
        assert!((part - due).abs() < 0.02, "{parts:?}");
    }
}

#[test]
fn returning_tenant_has_its_guarantee_within_one_run_time() {
    let sure = Quota { gpu_milli: Some(96_000), ..Quota::default() };
    let queues = || {
        vec![
            QueueSpec { guaranteed: sure.clone(), ..queue("lender", 1) },
            QueueSpec { weight: 9, ..queue("borrower", 1) },
        ]
    };
    for order in [QueueOrder::Fair, QueueOrder::Muster] {
        // The lender has no jobs for ten hours; the borrower has all 24 nodes by then.
        let mut jobs = flood("borrower", 360);
        jobs.extend(flood("lender", 240).into_iter().map(|mut job| {
            job.submit += Span::hours(10);
            job
        }));
        let sim = play(setup(queues(), 24, jobs), order, Span::hours(30));
        let names = ["lender", "borrower"];
        let away = parts(&sim, &names, Span::hours(2), Span::hours(10));
        assert_eq!(away[0], 0.0);
        // Running gangs are not stopped: an hour covers the longest of them.
        let back = parts(&sim, &names, Span::hours(12), Span::hours(30));
        assert!(
            back[0] > 0.5 - 0.02,
            "{}: 96 of 192 GPUs are its own, it has {back:?}",
            order.name()
        );
    }
}

#[test]
fn idle_guarantee_is_lent_and_accounted_as_borrowed() {
    let sure = Quota { gpu_milli: Some(96_000), ..Quota::default() };
    let lender = QueueSpec { guaranteed: sure, ..queue("lender", 1) };
    // Lent capacity must be reclaimable, so only preemptible gangs get it.
    let mut jobs = flood("borrower", 100);
    jobs.iter_mut().for_each(|job| job.gang.disruption.preemptible = true);
    let setup = setup(vec![lender, queue("borrower", 1)], 24, jobs);
    let sim = play(setup, QueueOrder::Muster, Span::hours(5));
    let world = sim.world();
    let named = |name: &str| {
        let found = world.queues().iter().find(|(_, queue)| *queue.spec.name == *name);
        found.expect("it was declared").1
    };
    assert_eq!(named("lender").lent().gpu_milli, 96_000);
    let borrower = named("borrower");
    assert_eq!(borrower.borrowed().gpu_milli, borrower.usage.gpu_milli, "it can count on nothing");
    assert!(borrower.usage.gpu_milli > 96_000, "it holds more than half of the cluster");
}
