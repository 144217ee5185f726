//! Small workloads whose figures are computed by hand.

use muster_core::gang::GangSpec;
use muster_core::queue::QueueSpec;
use muster_core::time::{Span, Time};
use muster_plan::Policy;
use muster_testkit::build;

use crate::accounts::Outcome;
use crate::report::*;
use crate::{Job, Setup, Sim, SimOptions, Summary};

fn at(secs: u64) -> Time {
    Time::ZERO + Span::secs(secs)
}

/// A job by its queue and user, GPUs, submit time and run time.
fn job(queue: &str, user: &str, gpus: u16, submit_s: u64, run_s: u64) -> Job {
    let name = format!("{queue}-{user}-{submit_s}");
    let gang = GangSpec { queue: queue.into(), user: user.into(), ..build::gang(&name, 1, gpus) };
    Job::new(gang, at(submit_s), Span::secs(run_s))
}

fn outcome(submitted: u64, started: u64, ended: u64) -> Outcome {
    Outcome {
        submitted: Some(at(submitted)),
        started: Some(at(started)),
        ended: Some(at(ended)),
        ..Outcome::default()
    }
}

/// One node of 8 GPUs, two queues of weights 3 and 1.
fn setup(jobs: Vec<Job>) -> Setup {
    let queue = |name, weight| QueueSpec { weight, ..QueueSpec::open(name) };
    Setup {
        queues: vec![queue("research", 3), queue("product", 1)],
        nodes: vec![build::node("n", 8, &[])],
        jobs,
        ..Setup::default()
    }
}

/// The summary of an empty run: the report takes only what outcomes do not hold from it.
fn no_summary() -> Summary {
    let sim = Sim::new(Setup::default(), Policy::default(), SimOptions::default());
    Summary::of(&sim.expect("an empty stage"), "fifo", false)
}

/// Two jobs one after the other, each on all 8 GPUs; the second one waits.
fn two_in_turn() -> Report {
    let jobs = vec![job("research", "ada", 8, 0, 300), job("product", "bob", 8, 100, 100)];
    let mut gather = Gather::new(&setup(jobs));
    let outcomes = [outcome(0, 0, 300), outcome(100, 300, 400)];
    gather.add_run(no_summary(), &outcomes, 0, at(400));
    gather.finish()
}

#[test]
fn utilisation_is_the_used_share_of_the_capacity() {
    assert_eq!(two_in_turn().runs[0].utilisation, Some(1.0));
    // Half of the GPUs for half of the time.
    let mut gather =
        Gather::new(&setup(vec![job("research", "", 4, 0, 100), job("research", "", 0, 0, 200)]));
    gather.add_run(no_summary(), &[outcome(0, 0, 100), outcome(0, 0, 200)], 0, at(500));
    assert_eq!(gather.finish().runs[0].utilisation, Some(0.25));
}

#[test]
fn end_of_a_log_does_not_dilute_utilisation_while_submitting() {
    // All GPUs until 100 s, none until 150 s, half of them until 500 s; the last job comes at 200 s.
    let jobs = vec![
        job("research", "", 8, 0, 100),
        job("research", "", 4, 150, 350),
        job("research", "", 0, 200, 10),
    ];
    let outcomes = [outcome(0, 0, 100), outcome(150, 150, 500), outcome(200, 200, 210)];
    let mut gather = Gather::new(&setup(jobs));
    gather.add_run(no_summary(), &outcomes, 0, at(500));
    let run = &gather.finish().runs[0];
    assert_eq!(run.utilisation_while_submitting, Some((800.0 + 200.0) / 1_600.0));
    assert_eq!(run.utilisation, Some((800.0 + 1_400.0) / 4_000.0));
}

#[test]
fn long_end_with_little_work_is_not_shown() {
    let shown = |last_run_s: u64| {
        let mut jobs: Vec<Job> = (0..100).map(|i| job("research", "", 8, i * 100, 90)).collect();
        jobs.push(job("research", "", 1, 50, last_run_s));
        let mut outcomes: Vec<Outcome> =
            (0..100).map(|i| outcome(i * 100, i * 100 + 50, i * 100 + 140)).collect();
        outcomes.push(outcome(50, 50, 50 + last_run_s));
        let mut gather = Gather::new(&setup(jobs));
        gather.add_run(no_summary(), &outcomes, 0, at(50 + last_run_s));
        let report = gather.finish();
        assert!(report.grid.to() >= at(9_950), "every start is shown");
        report.grid.to().since(report.grid.from)
    };
    assert!(shown(11_000) >= Span::secs(11_000));
    assert!(shown(1_000_000) >= Span::secs(950_000), "most of the work is in the end");
    assert!(shown(20_000) < Span::secs(19_900));
}

#[test]
fn run_without_work_is_shown_to_its_end() {
    let mut gather =
        Gather::new(&setup(vec![job("research", "", 0, 0, 100), job("research", "", 8, 0, 9)]));
    let waits = Outcome { submitted: Some(at(0)), ..Outcome::default() };
    gather.add_run(no_summary(), &[outcome(0, 1, 101), waits], 0, at(101));
    assert!(gather.finish().grid.to() >= at(101));
}

#[test]
fn utilisation_of_pools_is_the_used_share_of_purchased_capacity() {
    let bought = |gpu_s: u64| {
        let jobs = vec![job("research", "", 8, 0, 100)];
        let mut gather = Gather::new(&Setup { nodes: Vec::new(), ..setup(jobs) });
        gather.add_run(no_summary(), &[outcome(0, 180, 280)], gpu_s * 1_000, at(900));
        gather.finish().runs[0].utilisation
    };
    assert_eq!(bought(8 * 400), Some(0.25));
    assert_eq!(bought(0), None);
}

#[test]
fn elastic_gang_counts_with_its_actual_members() {
    let mut elastic = job("research", "", 1, 0, 100);
    (elastic.gang.roles[0].min, elastic.gang.roles[0].max) = (2, 8);
    let used = |took: u64| {
        let mut gather = Gather::new(&setup(vec![elastic.clone()]));
        gather.add_run(no_summary(), &[outcome(0, 0, took)], 0, at(took));
        gather.finish().runs[0].all.used_hours * 3_600.0
    };
    // All eight for 100 s, four for 200 s, two for 400 s: the same work.
    for took in [100, 200, 400] {
        assert!((used(took) - 800.0).abs() < 1e-6, "{took}");
    }
}

#[test]
fn timeline_shows_running_and_waiting_capacity_by_queue() {
    let report = two_in_turn();
    assert_eq!(report.bands.named, ["research", "product"].map(Into::into));
    let Timeline { running, waiting, never } = &report.runs[0].timeline;
    let bucket = |secs: u64| (Span::secs(secs).0 / report.grid.width.0) as usize;
    let seen = |secs: u64| {
        let now = |bands: &[Vec<f64>]| [bands[0][bucket(secs)], bands[1][bucket(secs)]];
        (now(running), now(waiting))
    };
    assert_eq!(seen(50), ([8.0, 0.0], [0.0, 0.0]));
    assert_eq!(seen(200), ([8.0, 0.0], [0.0, 8.0]));
    assert_eq!(seen(350), ([0.0, 8.0], [0.0, 0.0]));
    assert!(never.iter().all(|waits| *waits == 0.0));
}

#[test]
fn jobs_that_never_start_wait_to_the_end() {
    let jobs = vec![job("research", "", 8, 0, 100), job("research", "", 64, 0, 100)];
    let mut gather = Gather::new(&setup(jobs));
    let stuck = Outcome { submitted: Some(at(0)), ..Outcome::default() };
    gather.add_run(no_summary(), &[outcome(0, 0, 100), stuck], 0, at(100));
    let report = gather.finish();
    assert!(report.runs[0].timeline.never.iter().all(|waits| *waits == 64.0));
    assert_eq!((report.runs[0].all.jobs, report.runs[0].all.ended), (2, 1));
}

#[test]
fn shares_are_shown_beside_fair_shares_by_weight() {
    let report = two_in_turn();
    assert_eq!((report.shares.by, &report.shares.dues), (By::Queue, &vec![0.75, 0.25]));
    let research = &report.runs[0].shares[0];
    assert_eq!((research[0], research[research.len() - 1]), (Some(1.0), Some(0.0)));
    assert_eq!(report.runs[0].queues[0].used_hours * 3_600.0, 2_400.0);
}

#[test]
fn single_queue_is_shared_by_its_users() {
    let jobs = vec![job("research", "ada", 8, 0, 50), job("research", "bob", 8, 0, 50)];
    let mut gather = Gather::new(&setup(jobs));
    gather.add_run(no_summary(), &[outcome(0, 0, 50), outcome(0, 150, 200)], 0, at(200));
    let report = gather.finish();
    assert_eq!((report.shares.by, &report.shares.dues), (By::User, &vec![0.5, 0.5]));
    // Nothing runs between 50 and 150 s.
    let ada = &report.runs[0].shares[0];
    assert_eq!(ada[ada.len() / 2], None);
    // Slowdowns of 1 and 4.
    let fairness = &report.runs[0].fairness;
    assert_eq!((fairness.by, fairness.jain), (By::User, 25.0 / 34.0));
    assert_eq!(fairness.curve, [(0.5, 1.0), (1.0, 4.0)]);
}

#[test]
fn report_on_all_jobs_agrees_with_the_summary() {
    let users = ["ada", "bob", "eve"];
    let some = |i: u64| job("research", users[i as usize % 3], 1 + i as u16 % 8, i * 40, 5 + i * 7);
    let setup = setup((0..60).map(some).collect());
    let mut gather = Gather::new(&setup);
    let mut sim =
        Sim::new(setup, Policy::default(), SimOptions::default()).expect("a well-formed stage");
    sim.run(Time::MAX);
    let summary = Summary::of(&sim, "fifo", false);
    gather.add(&sim, summary.clone());
    let Run { all, span, .. } = gather.finish().runs[0].clone();
    assert!(summary.mean_wait_s > 0.0, "some job waits");
    assert_eq!((all.jobs, all.ended), (summary.jobs, summary.ended));
    assert_eq!(
        [all.mean_wait_s, all.p50_wait_s, all.p95_wait_s, all.p99_wait_s, all.max_wait_s],
        [
            summary.mean_wait_s,
            summary.p50_wait_s,
            summary.p95_wait_s,
            summary.p99_wait_s,
            summary.max_wait_s
        ]
    );
    assert_eq!((all.avg_bsld, span.as_secs_f64()), (summary.avg_bsld, summary.makespan_s));
    assert!((all.used_hours - summary.busy_gpu_hours).abs() < 1e-9);
}

#[test]
fn report_of_a_long_log_stays_small() {
    let jobs: Vec<Job> = (0..5_000).map(|i| job("research", "", 1, i * 60, 30)).collect();
    let outcomes: Vec<Outcome> =
        (0..5_000).map(|i| outcome(i * 60, i * 60 + 1, i * 60 + 31)).collect();
    let mut gather = Gather::new(&setup(jobs));
    gather.add_run(no_summary(), &outcomes, 0, at(300_000));
    let report = gather.finish();
    let run = &report.runs[0];
    assert!(report.grid.buckets <= 600, "{:?}", report.grid);
    for points in [run.timeline.running[0].len(), run.waits.len(), run.fairness.curve.len()] {
        assert!(points <= 600, "{points}");
    }
}
