//! Nodes that are there before they are needed, end to end: warm, stopped, scheduled, replaced when too old.

use insta::assert_snapshot;
use muster_core::order::ClaimFailure;
use muster_core::proactive::Schedule;
use muster_core::time::Span;
use muster_plan::Policy;
use muster_testkit::build;

use crate::stage::{exact_cloud, job};
use crate::told::{awake, play, pool, setup};

#[test]
fn a_warm_pool_lets_a_gang_start_at_once_and_is_filled_again() {
    let mut warm = pool();
    warm.ahead.warm = 4;
    let mut stage = setup(warm, exact_cloud(&[]));
    stage.jobs = vec![
        job(build::gang("hit", 4, 1), 3_600, 1_800),
        job(build::gang("again", 4, 1), 3_600 + 200, 1_800),
        job(build::gang("miss", 5, 1), 3_600 + 210, 1_800),
    ];
    let told = play(awake(stage), Policy::default(), 4);
    assert_eq!((told.waited(0), told.waited(1)), (Some(0), Some(0)), "{}", told.text());
    assert!(told.waited(2) > Some(0), "four warm nodes are worth little to a gang of five");
    assert_eq!(told.idle(), 4, "as many as it keeps, and no more");
}

#[test]
fn a_stopped_pool_halves_the_wait() {
    let wait = |stopped: u32| {
        let mut slow = pool();
        slow.ahead.stopped = stopped;
        for offering in &mut slow.offerings {
            (offering.boot_time, offering.start_time) = (Span::mins(6), Some(Span::mins(3)));
        }
        let mut stage = setup(slow, exact_cloud(&[]));
        stage.jobs = vec![job(build::gang("train", 4, 1), 7_200, 600)];
        let told = play(awake(stage), Policy::default(), 4);
        assert_eq!(told.times("woken"), usize::from(stopped > 0), "{}", told.text());
        told.waited(0)
    };
    assert_eq!((wait(0), wait(4)), (Some(360), Some(180)));
}

#[test]
fn a_schedule_has_its_nodes_there_at_eight_in_berlin_on_the_days_the_clocks_change() {
    // (the evening before, in UTC; hours from there until eight o'clock in Berlin)
    for (evening, eight) in [("2026-03-28T22:00:00Z", 8), ("2026-10-24T22:00:00Z", 9)] {
        let mut at_eight = pool();
        let schedule = Schedule {
            cron: "0 8 * * *".into(),
            timezone: "Europe/Berlin".into(),
            duration: Span::hours(2),
            nodes: 4,
        };
        at_eight.ahead.schedules = vec![schedule];
        let mut stage = setup(at_eight, exact_cloud(&[]));
        stage.epoch = evening.parse::<jiff::Timestamp>().expect("a time").as_millisecond();
        stage.jobs = vec![job(build::gang("train", 4, 1), eight * 3_600, 600)];
        let told = play(awake(stage), Policy::default(), 12);
        assert_eq!(told.waited(0), Some(0), "{evening}: {}", told.text());
        assert_eq!(told.sim.accounts().meter().claims(), 4, "{}", told.text());
        assert_eq!(told.idle(), 0, "they are given back when the hours are over: {}", told.text());
    }
}

#[test]
fn an_expired_node_is_replaced_and_a_running_gang_is_left_alone() {
    let mut aging = pool();
    (aging.ahead.warm, aging.expire_after) = (1, Some(Span::hours(6)));
    let mut stage = setup(aging, exact_cloud(&[]));
    stage.jobs = vec![job(build::gang("long", 1, 1), 3_600, 10 * 3_600)];
    let told = play(awake(stage), Policy::default(), 20);
    assert_snapshot!(told.text(), @"
        1 ends
     3600 long starts with 1
    25200 released
    39600 ends
    39600 released
    46800 released
    68400 released
    ");
    assert_eq!(told.sim.accounts().outcomes()[0].restarts, 0);
    assert_eq!(told.idle(), 1);
}

#[test]
fn a_warm_node_that_never_shows_its_gpus_is_given_back_and_replaced() {
    let mut warm = pool();
    warm.ahead.warm = 1;
    let stage = setup(warm, exact_cloud(&[("a", 1, ClaimFailure::GpusMissing)]));
    let told = play(awake(stage), Policy::default(), 2);
    assert_eq!(told.times("released"), 1, "{}", told.text());
    assert_eq!(told.idle(), 1);
}
