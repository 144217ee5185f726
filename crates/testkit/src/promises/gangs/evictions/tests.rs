//! Evictions that are right, and each way in which they can be wrong.

use muster_core::gang::GangSpec;
use muster_core::id::GangId;
use muster_core::order::RollbackReason;
use muster_core::plan::StopReason;
use muster_core::queue::QueueSpec;
use muster_core::time::{Span, Time};

use crate::build;
use crate::promises::fixture::{NODE, Stage};

const NONE: [&str; 0] = [];

/// A gang of one member that may be stopped for others after ten minutes.
fn low(name: &str) -> GangSpec {
    let mut gang = build::gang(name, 1, 1);
    gang.disruption.preemptible = true;
    gang.disruption.min_runtime = Span::mins(10);
    gang
}

fn high(name: &str) -> GangSpec {
    GangSpec { priority: 100, ..build::gang(name, 1, 1) }
}

/// A victim that has run for a while, and one of higher priority that has an order.
fn two(stage: &mut Stage, victim: GangSpec) -> (GangId, GangId) {
    let victim = stage.submit(victim);
    stage.start(victim, 1);
    stage.pass(15);
    let by = stage.submit(high("high"));
    (victim, by)
}

/// What is said differently about a gang.
type Change = fn(&mut GangSpec);

#[test]
fn a_gang_makes_way_for_one_that_then_starts() {
    let mut stage = Stage::new(&[]);
    let (victim, by) = two(&mut stage, low("low"));
    for _ in 0..2 {
        let order = stage.order(by, &[victim]);
        stage.stop(victim, StopReason::Preempted(by));
        stage.complete(order, by, 1);
        stage.stop(by, StopReason::NodeLost(NODE));
        stage.start(victim, 1);
        stage.pass(15);
    }
    let what = "high was stopped (NodeLost(n0)) without that being so";
    assert_eq!(stage.broken(), [what; 2], "only what this test made up");
}

#[test]
fn only_who_may_be_stopped_is_stopped() {
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
        let mut stage = Stage::new(&[]);
        let mut gang = low(name);
        change(&mut gang);
        let (victim, by) = two(&mut stage, gang);
        stage.order(by, &[victim]);
        stage.stop(victim, StopReason::Preempted(by));
        assert_eq!(stage.broken(), [format!("{name} was stopped (Preempted(g1)), but {why}")]);
    }
}

#[test]
fn nobody_of_its_queue_makes_way_for_a_gentle_gang_but_for_its_turn() {
    let ask = |queues: &[QueueSpec], from: &'static str, reason: fn(GangId) -> StopReason| {
        let mut stage = Stage::new(queues);
        let mut gang = low("low");
        gang.queue = from.into();
        let victim = stage.submit(gang);
        stage.start(victim, 1);
        stage.pass(65);
        let mut gentle = high("high");
        gentle.queue = "a".into();
        gentle.disruption.gentle = true;
        let by = stage.submit(gentle);
        stage.order(by, &[victim]);
        stage.stop(victim, reason(by));
        stage.broken()
    };
    let own = || QueueSpec::open("a");
    let turns = QueueSpec { time_slice: Some(Span::hours(1)), ..own() };
    let other = || QueueSpec::open("b");
    assert_eq!(
        ask(&[own()], "a", StopReason::Preempted),
        [
            "low makes way for high, which is gentle",
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
fn nobody_is_stopped_for_one_that_is_not_sure_to_start() {
    let mut stage = Stage::new(&[]);
    let (victim, by) = two(&mut stage, low("low"));
    stage.stop(victim, StopReason::Preempted(by));
    let what = "low was stopped for high, which has no order that waits for it";
    assert_eq!(stage.broken(), [what]);
}

#[test]
fn an_order_that_others_made_way_for_is_not_given_up_lightly() {
    let give_up = |reason| {
        let mut stage = Stage::new(&[]);
        let (victim, by) = two(&mut stage, low("low"));
        let order = stage.order(by, &[victim]);
        stage.stop(victim, StopReason::Preempted(by));
        stage.roll_back(order, by, reason);
        stage.broken()
    };
    assert_eq!(give_up(RollbackReason::NodeLost(NODE)), NONE);
    assert_eq!(give_up(RollbackReason::DeadlinePassed), NONE);
    let what = "low was stopped for high, which gave its order up";
    assert_eq!(give_up(RollbackReason::NotNeeded), [what]);
}

#[test]
fn nobody_is_stopped_again_before_the_first_has_started() {
    let again = |reason: Option<RollbackReason>| {
        let mut stage = Stage::new(&[]);
        let (victim, first) = two(&mut stage, low("low"));
        let order = stage.order(first, &[victim]);
        stage.stop(victim, StopReason::Preempted(first));
        if let Some(reason) = reason {
            stage.roll_back(order, first, reason);
        }
        stage.start(victim, 1);
        stage.pass(10);
        let second = stage.submit(high("second"));
        stage.order(second, &[victim]);
        stage.stop(victim, StopReason::Preempted(second));
        stage.broken()
    };
    assert_eq!(again(None), ["low was stopped again before high has started"]);
    assert_eq!(again(Some(RollbackReason::NodeLost(NODE))), NONE, "nobody could help it");
}

#[test]
fn a_queue_bears_so_many_evictions_an_hour_and_what_was_lent_goes_back_all_the_same() {
    let queue = QueueSpec { evictions_per_hour: Some(1), ..QueueSpec::open("default") };
    let evict = |second: fn(GangId) -> StopReason, later: u64| {
        let mut stage = Stage::new(std::slice::from_ref(&queue));
        let victims = ["a", "b"].map(|name| stage.submit(low(name)));
        victims.iter().for_each(|victim| stage.start(*victim, 1));
        stage.pass(15);
        let by = stage.submit(high("high"));
        stage.order(by, &victims);
        stage.stop(victims[0], StopReason::Preempted(by));
        stage.pass(later);
        stage.stop(victims[1], second(by));
        stage.broken()
    };
    let what = "2 gangs of default were evicted within an hour, and 1 may be";
    assert_eq!(evict(StopReason::Preempted, 5), [what]);
    assert_eq!(evict(StopReason::Reclaimed, 5), NONE);
}

#[test]
fn what_was_lent_comes_back_however_long_the_borrower_would_like_to_run() {
    let reclaim = |queue: &str, within: u64| {
        let reclaim_within = Some(Span::mins(within));
        let lender = QueueSpec { reclaim_within, ..QueueSpec::open("lender") };
        let mut stage = Stage::new(&[lender, QueueSpec::open("default")]);
        let mut gang = low("low");
        gang.disruption.min_runtime = Span::hours(1);
        let victim = stage.submit(gang);
        stage.start(victim, 1);
        stage.pass(12);
        let by = stage.submit(GangSpec { queue: queue.into(), ..build::gang("by", 1, 1) });
        stage.order(by, &[victim]);
        stage.stop(victim, StopReason::Reclaimed(by));
        stage.broken()
    };
    assert_eq!(reclaim("lender", 12), NONE);
    assert_eq!(reclaim("default", 12), NONE, "ten minutes when nobody says");
    let what = "low was stopped (Reclaimed(g1)), but it has not run for as long as it may";
    assert_eq!(reclaim("lender", 13), [what]);
}

#[test]
fn turns_are_taken_only_where_the_queue_says_so_and_when_they_are_over() {
    let rotate = |slice: Option<Span>| {
        let queue = QueueSpec { time_slice: slice, ..QueueSpec::open("default") };
        let mut stage = Stage::new(&[queue]);
        let (victim, by) = two(&mut stage, low("low"));
        stage.order(by, &[victim]);
        stage.stop(victim, StopReason::Rotated(by));
        stage.broken()
    };
    let what = "low was stopped (Rotated(g1)), but its turn is not over";
    assert_eq!(rotate(Some(Span::mins(15))), NONE);
    assert_eq!(rotate(Some(Span::mins(16))), [what]);
    assert_eq!(rotate(None), [what]);
}

#[test]
fn a_failing_node_is_one_that_was_announced_to_go() {
    let mut stage = Stage::new(&[]);
    let gang = stage.submit(build::gang("a", 1, 1));
    stage.start(gang, 1);
    stage.stop(gang, StopReason::NodeFailing(NODE));
    let what = "a was stopped (NodeFailing(n0)), but no node under it is about to go";
    assert_eq!(stage.broken(), [what]);
    stage.start(gang, 1);
    stage.notice(Time(3_600_000));
    stage.stop(gang, StopReason::NodeFailing(NODE));
    assert_eq!(stage.broken().len(), 1);
}
