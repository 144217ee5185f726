//! Preemption, termination notices and resizes of running gangs, with no more lost work than necessary.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use muster_core::Fact;
use muster_core::gang::{Checkpoint, Disruption, GangSpec, Signal};
use muster_core::id::GangId;
use muster_core::plan::StopReason;
use muster_core::queue::QueueSpec;
use muster_core::time::{Span, Time};
use muster_plan::Policy;
use muster_sim::cloud::{Availability, CloudModel};
use muster_sim::host::Outage;
use muster_sim::{Job, Setup, Sim, SimOptions, Summary};
use muster_testkit::build;

use crate::two_zones::{exact_cloud, job, two_zones};

/// So many nodes of eight GPUs, and these jobs.
fn cluster(nodes: u32, jobs: Vec<Job>) -> Setup {
    Setup {
        queues: vec![QueueSpec::open("default")],
        nodes: (0..nodes).map(|i| build::node(&format!("n{i}"), 8, &[])).collect(),
        jobs,
        ..Setup::default()
    }
}

/// A gang that saves within two minutes on a signal, and takes one minute to restart from that.
fn saving(name: &str, members: u32) -> GangSpec {
    let signal = Some(Signal::SigUsr1);
    let checkpoint = Checkpoint { signal, every: None, restart: Span::mins(1) };
    let disruption = Disruption {
        preemptible: true,
        grace: Span::mins(2),
        checkpoint: Some(checkpoint),
        ..Disruption::default()
    };
    GangSpec {
        disruption,
        expected_duration: Some(Span::hours(2)),
        ..build::gang(name, members, 8)
    }
}

/// Runs to the end with every promise checked; facts about gangs and notices, each with its time in seconds.
fn play(setup: Setup) -> (Vec<(u64, Fact)>, Sim) {
    let options = SimOptions { check: true, ..SimOptions::default() };
    let mut sim = Sim::new(setup, Policy::default(), options).expect("a well-formed stage");
    let facts: Rc<RefCell<Vec<(u64, Fact)>>> = Rc::default();
    let noted = facts.clone();
    sim.watch(Box::new(move |now, _, fact| {
        noted.borrow_mut().push((now.0 as u64 / 1_000, fact.clone()));
    }));
    sim.run(Time::ZERO + Span::hours(48));
    assert_eq!(sim.violations(), [], "promises are kept");
    assert_eq!(sim.unfinished(), 0, "all is done");
    drop(sim.unwatch());
    (Rc::try_unwrap(facts).expect("the watcher is gone").into_inner(), sim)
}

/// The time of the first matching fact.
fn when(facts: &[(u64, Fact)], is: impl Fn(&Fact) -> bool) -> Option<u64> {
    facts.iter().find(|(_, fact)| is(fact)).map(|(at, _)| *at)
}

fn starts(facts: &[(u64, Fact)], of: GangId) -> Vec<u64> {
    let starts =
        facts.iter().filter(|(_, f)| matches!(f, Fact::GangStarted { gang } if *gang == of));
    starts.map(|(at, _)| *at).collect()
}

#[test]
fn preempted_gang_saves_its_work_and_resumes_later() {
    let urgent = GangSpec { priority: 100, ..build::gang("urgent", 4, 8) };
    let urgent = GangSpec { expected_duration: Some(Span::mins(20)), ..urgent };
    let jobs = vec![job(saving("long", 4), 0, 7_200), job(urgent, 1_800, 1_200)];
    let (facts, sim) = play(cluster(4, jobs));
    let (long, urgent) = (GangId(0), GangId(1));
    let told = when(&facts, |fact| matches!(fact, Fact::GangStopping { .. }));
    let stopped = when(&facts, |fact| {
        let by = StopReason::Preempted(urgent);
        matches!(fact, Fact::GangStopped { gang, reason } if *gang == long && *reason == by)
    });
    assert_eq!(told, Some(1_800));
    let stopped = stopped.expect("it is preempted");
    assert!((1_800..=1_920).contains(&stopped), "{stopped}");
    assert_eq!(starts(&facts, urgent), [stopped], "the moment they have left");
    assert_eq!(starts(&facts, long), [0, stopped + 1_200], "as soon as it can");
    let [long, _] = sim.accounts().outcomes() else { panic!("two jobs") };
    let ended = long.ended.expect("it ends").0 / 1_000;
    assert_eq!(ended, 7_200 + 1_200 + 60, "nothing is done twice");
    assert_eq!((long.evictions, long.restarts), (1, 1));
    let summary = Summary::of(&sim, "muster", true);
    let disturbed = summary.disruptions.expect("some gang was");
    assert_eq!((disturbed.preemptions, disturbed.evictions()), (1, 1));
    assert_eq!(summary.lost_gpu_hours, 0.0);
    assert!((disturbed.paused_gpu_hours - 32.0 / 60.0).abs() < 1e-9, "a minute on four nodes");
}

#[test]
fn gang_leaves_a_spot_machine_within_its_notice() {
    // Two machines in zone a for half an hour, then one.
    let record = Availability::new(Span::mins(30), vec![2, 1, 1, 1, 1, 1]).expect("a record");
    let recorded: BTreeMap<Arc<str>, _> = BTreeMap::from([("a".into(), record.into())]);
    let model = CloudModel { recorded, notice: Span::mins(2), ..exact_cloud(&[]) };
    let mut setup = two_zones(4, model);
    setup.jobs = vec![job(saving("train", 2), 0, 3_600)];
    let (facts, sim) = play(setup);
    let noticed = when(&facts, |fact| matches!(fact, Fact::NodeNoticed { .. }));
    assert_eq!(noticed, Some(1_800));
    let failing = |reason: &StopReason| matches!(reason, StopReason::NodeFailing(_));
    let left = when(&facts, |f| matches!(f, Fact::GangStopped { reason, .. } if failing(reason)));
    let lost = when(&facts, |fact| matches!(fact, Fact::NodeLost { .. }));
    let (left, lost) = (left.expect("it leaves"), lost.expect("it goes"));
    assert!(left <= lost && lost <= 1_920, "left at {left}, lost at {lost}");
    let summary = Summary::of(&sim, "muster", true);
    assert_eq!(summary.lost_gpu_hours, 0.0, "it had time to save");
    assert_eq!(summary.disruptions.map(|d| (d.repairs, d.notices)), Some((1, 1)));
}

#[test]
fn node_that_fails_repeatedly_is_quarantined() {
    let outage = |mins| Outage {
        node: 0,
        at: Time::ZERO + Span::mins(mins),
        notice: Span::ZERO,
        lasts: Some(Span::mins(1)),
    };
    let mut setup = cluster(1, vec![job(build::gang("a", 1, 8), 0, 3_600)]);
    setup.outages = vec![outage(10), outage(20), outage(40)];
    let (facts, _) = play(setup);
    let mins: Vec<u64> = starts(&facts, GangId(0)).iter().map(|at| at / 60).collect();
    // Back after a minute at first; after the second failure half an hour later, for all that it fails idle.
    assert_eq!(mins, [0, 11, 50]);
}

#[test]
fn elastic_gang_shrinks_before_a_gang_is_stopped_and_grows_again() {
    let mut stretchy = saving("stretchy", 1);
    stretchy.roles[0].max = 4;
    let other = GangSpec { expected_duration: Some(Span::mins(30)), ..build::gang("other", 2, 8) };
    let jobs = vec![job(stretchy, 0, 7_200), job(other, 3_600, 1_800)];
    let (facts, sim) = play(cluster(4, jobs));
    let disturbed = Summary::of(&sim, "muster", true).disruptions.expect("it changes");
    assert_eq!(disturbed.evictions(), 0, "{facts:#?}");
    assert!(disturbed.shrunk >= 1 && disturbed.grown >= 1, "{disturbed:?}");
    let [_, other] = sim.accounts().outcomes() else { panic!("two jobs") };
    assert!(other.wait().is_some_and(|wait| wait <= Span::mins(2)), "{other:?}");
}
