//! Correct evictions, and each way in which they can be wrong.

use muster_core::gang::GangSpec;
use muster_core::id::GangId;
use muster_core::order::RollbackReason;
use muster_core::plan::StopReason;
use muster_core::queue::QueueSpec;
use muster_core::time::{Span, Time};

use crate::build;
use crate::promises::fixture::{Fixture, NODE};

const NONE: [&str; 0] = [];

/// A gang of one member that may be preempted after ten minutes.
fn low(name: &str) -> GangSpec {
    let mut gang = build::gang(name, 1, 1);
    gang.disruption.preemptible = true;
    gang.disruption.min_runtime = Span::mins(10);
    gang
}

fn high(name: &str) -> GangSpec {
    GangSpec { priority: 100, ..build::gang(name, 1, 1) }
}

/// A victim that has run for a while, and a gang of higher priority that has an order.
fn two(fixture: &mut Fixture, victim: GangSpec) -> (GangId, GangId) {
    let victim = fixture.submit(victim);
    fixture.start(victim, 1);
    fixture.pass(15);
    let by = fixture.submit(high("high"));
    (victim, by)
}

/// A change to a gang's spec.
type Change = fn(&mut GangSpec);

#[test]
fn victim_is_stopped_for_a_gang_that_then_starts() {
    let mut fixture = Fixture::new(&[]);
    let (victim, by) = two(&mut fixture, low("low"));
    for _ in 0..2 {
        let order = fixture.order(by, &[victim]);
        fixture.stop(victim, StopReason::Preempted(by));
        fixture.complete(order, by, 1);
        fixture.stop(by, StopReason::NodeLost(NODE));
        fixture.start(victim, 1);
        fixture.pass(15);
    }
    let what = "high was stopped (NodeLost(n0)) without that being so";
    assert_eq!(fixture.broken(), [what; 2], "only what this test made up");
}

#[test]
fn only_eligible_gangs_are_preempted() {
    let cases: [(&str, Change, &str); 3] = [
        ("may not", |gang| gang.disruption.preemptible = false, "it may not be stopped for others"),
        (
            "not yet",
            |gang| gang.disruption.min_runtime = Span::mins(16),
            "it has not run for as long as it may",
        ),
        ("as high", |gang| gang.priority = 100, "whoever needs its seats has no higher priority"),
    ];
    for (name, change, why) in cases {
        let mut fixture = Fixture::new(&[]);
        let mut gang = low(name);
        change(&mut gang);
        let (victim, by) = two(&mut fixture, gang);
        fixture.order(by, &[victim]);
        fixture.stop(victim, StopReason::Preempted(by));
        assert_eq!(fixture.broken(), [format!("{name} was stopped (Preempted(g1)), but {why}")]);
    }
}

#[test]
fn gang_that_never_preempts_has_no_victims_but_by_time_slice() {
    let ask = |queues: &[QueueSpec], from: &'static str, reason: fn(GangId) -> StopReason| {
        let mut fixture = Fixture::new(queues);
        let mut gang = low("low");
        gang.queue = from.into();
        let victim = fixture.submit(gang);
        fixture.start(victim, 1);
        fixture.pass(65);
        let mut never_preempts = high("high");
        never_preempts.queue = "a".into();
        never_preempts.disruption.never_preempts = true;
        let by = fixture.submit(never_preempts);
        fixture.order(by, &[victim]);
        fixture.stop(victim, reason(by));
        fixture.broken()
    };
    let own = || QueueSpec::open("a");
    let turns = QueueSpec { time_slice: Some(Span::hours(1)), ..own() };
    let other = || QueueSpec::open("b");
    assert_eq!(
        ask(&[own()], "a", StopReason::Preempted),
        [
            "low is preempted for high, which never preempts",
            "low was stopped (Preempted(g1)), but whoever needs its seats has no higher priority",
        ]
    );
    assert_eq!(ask(&[turns], "a", StopReason::Rotated), NONE);
    assert_eq!(ask(&[own(), other()], "b", StopReason::Reclaimed), NONE);
    assert_eq!(
        ask(&[own(), other()], "b", StopReason::Preempted),
        ["low was stopped (Preempted(g1)), but whoever needs its seats has no higher priority"]
    );
}

#[test]
fn no_victim_is_stopped_for_a_gang_that_is_not_sure_to_start() {
    let mut fixture = Fixture::new(&[]);
    let (victim, by) = two(&mut fixture, low("low"));
    fixture.stop(victim, StopReason::Preempted(by));
    let what = "low was stopped for high, which has no order that waits for it";
    assert_eq!(fixture.broken(), [what]);
}

#[test]
fn order_with_stopped_victims_is_rolled_back_for_cause_only() {
    let give_up = |reason| {
        let mut fixture = Fixture::new(&[]);
        let (victim, by) = two(&mut fixture, low("low"));
        let order = fixture.order(by, &[victim]);
        fixture.stop(victim, StopReason::Preempted(by));
        fixture.roll_back(order, by, reason);
        fixture.broken()
    };
    assert_eq!(give_up(RollbackReason::NodeLost(NODE)), NONE);
    assert_eq!(give_up(RollbackReason::DeadlinePassed), NONE);
    let what = "low was stopped for high, which gave its order up";
    assert_eq!(give_up(RollbackReason::NotNeeded), [what]);
}

#[test]
fn no_second_victim_before_the_first_preemptor_has_started() {
    let again = |reason: Option<RollbackReason>| {
        let mut fixture = Fixture::new(&[]);
        let (victim, first) = two(&mut fixture, low("low"));
        let order = fixture.order(first, &[victim]);
        fixture.stop(victim, StopReason::Preempted(first));
        if let Some(reason) = reason {
            fixture.roll_back(order, first, reason);
        }
        fixture.start(victim, 1);
        fixture.pass(10);
        let second = fixture.submit(high("second"));
        fixture.order(second, &[victim]);
        fixture.stop(victim, StopReason::Preempted(second));
        fixture.broken()
    };
    assert_eq!(again(None), ["low was stopped again before high has started"]);
    assert_eq!(again(Some(RollbackReason::NodeLost(NODE))), NONE, "nobody could help it");
}

#[test]
fn eviction_budget_limits_preemptions_but_not_reclaims() {
    let queue = QueueSpec { evictions_per_hour: Some(1), ..QueueSpec::open("default") };
    let evict = |second: fn(GangId) -> StopReason, later: u64| {
        let mut fixture = Fixture::new(std::slice::from_ref(&queue));
        let victims = ["a", "b"].map(|name| fixture.submit(low(name)));
        victims.iter().for_each(|victim| fixture.start(*victim, 1));
        fixture.pass(15);
        let by = fixture.submit(high("high"));
        fixture.order(by, &victims);
        fixture.stop(victims[0], StopReason::Preempted(by));
        fixture.pass(later);
        fixture.stop(victims[1], second(by));
        fixture.broken()
    };
    let what = "2 gangs of default were evicted within an hour, and 1 may be";
    assert_eq!(evict(StopReason::Preempted, 5), [what]);
    assert_eq!(evict(StopReason::Reclaimed, 5), NONE);
}

#[test]
fn reclaim_ignores_the_borrowers_minimum_run_time() {
    let reclaim = |queue: &str, within: u64| {
        let reclaim_within = Some(Span::mins(within));
        let lender = QueueSpec { reclaim_within, ..QueueSpec::open("lender") };
        let mut fixture = Fixture::new(&[lender, QueueSpec::open("default")]);
        let mut gang = low("low");
        gang.disruption.min_runtime = Span::hours(1);
        let victim = fixture.submit(gang);
        fixture.start(victim, 1);
        fixture.pass(12);
        let by = fixture.submit(GangSpec { queue: queue.into(), ..build::gang("by", 1, 1) });
        fixture.order(by, &[victim]);
        fixture.stop(victim, StopReason::Reclaimed(by));
        fixture.broken()
    };
    assert_eq!(reclaim("lender", 12), NONE);
    assert_eq!(reclaim("default", 12), NONE, "ten minutes when nobody says");
    let what = "low was stopped (Reclaimed(g1)), but it has not run for as long as it may";
    assert_eq!(reclaim("lender", 13), [what]);
}

#[test]
fn rotation_only_with_time_slices_and_after_their_end() {
    let rotate = |slice: Option<Span>| {
        let queue = QueueSpec { time_slice: slice, ..QueueSpec::open("default") };
        let mut fixture = Fixture::new(&[queue]);
        let (victim, by) = two(&mut fixture, low("low"));
        fixture.order(by, &[victim]);
        fixture.stop(victim, StopReason::Rotated(by));
        fixture.broken()
    };
    let what = "low was stopped (Rotated(g1)), but its turn is not over";
    assert_eq!(rotate(Some(Span::mins(15))), NONE);
    assert_eq!(rotate(Some(Span::mins(16))), [what]);
    assert_eq!(rotate(None), [what]);
}

#[test]
fn stop_for_a_failing_node_requires_a_notice() {
    let mut fixture = Fixture::new(&[]);
    let gang = fixture.submit(build::gang("a", 1, 1));
    fixture.start(gang, 1);
    fixture.stop(gang, StopReason::NodeFailing(NODE));
    let what = "a was stopped (NodeFailing(n0)), but no node under it is about to go";
    assert_eq!(fixture.broken(), [what]);
    fixture.start(gang, 1);
    fixture.notice(Time(3_600_000));
    fixture.stop(gang, StopReason::NodeFailing(NODE));
    assert_eq!(fixture.broken().len(), 1);
}
