//! Proactive capacity, end to end: warm, stopped and scheduled nodes, replacement of expired ones.

use insta::assert_snapshot;
use muster_core::ahead::Schedule;
use muster_core::order::ClaimFailure;
use muster_core::time::Span;
use muster_plan::Policy;
use muster_testkit::build;

use crate::fact_log::{awake, play, pool, setup};
use crate::two_zones::{exact_cloud, job};

#[test]
fn warm_pool_starts_a_gang_at_once_and_is_refilled() {
    let mut warm = pool();
    warm.ahead.warm = 4;
    let mut stage = setup(warm, exact_cloud(&[]));
    stage.jobs = vec![
        job(build::gang("hit", 4, 1), 3_600, 1_800),
        job(build::gang("again", 4, 1), 3_600 + 200, 1_800),
        job(build::gang("miss", 5, 1), 3_600 + 210, 1_800),
    ];
    let log = play(awake(stage), Policy::default(), 4);
    assert_eq!((log.waited(0), log.waited(1)), (Some(0), Some(0)), "{}", log.text());
    assert!(log.waited(2) > Some(0), "four warm nodes are worth little to a gang of five");
    assert_eq!(log.idle(), 4, "as many as it keeps, and no more");
}

#[test]
fn pool_of_stopped_nodes_halves_the_wait() {
    let wait = |stopped: u32| {
        let mut slow = pool();
        slow.ahead.stopped = stopped;
        for offering in &mut slow.offerings {
            (offering.boot_time, offering.start_time) = (Span::mins(6), Some(Span::mins(3)));
        }
        let mut stage = setup(slow, exact_cloud(&[]));
        stage.jobs = vec![job(build::gang("train", 4, 1), 7_200, 600)];
        let log = play(awake(stage), Policy::default(), 4);
        assert_eq!(log.times("woken"), usize::from(stopped > 0), "{}", log.text());
        log.waited(0)
    };
    assert_eq!((wait(0), wait(4)), (Some(360), Some(180)));
}

#[test]
fn scheduled_nodes_are_ready_at_eight_local_time_when_clocks_change() {
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
        let log = play(awake(stage), Policy::default(), 12);
        assert_eq!(log.waited(0), Some(0), "{evening}: {}", log.text());
        assert_eq!(log.sim.accounts().meter().claims(), 4, "{}", log.text());
        assert_eq!(log.idle(), 0, "they are given back when the hours are over: {}", log.text());
    }
}

#[test]
fn expired_node_is_replaced_and_a_running_gang_is_not_stopped() {
    let mut aging = pool();
    (aging.ahead.warm, aging.expire_after) = (1, Some(Span::hours(6)));
    let mut stage = setup(aging, exact_cloud(&[]));
    stage.jobs = vec![job(build::gang("long", 1, 1), 3_600, 10 * 3_600)];
    let log = play(awake(stage), Policy::default(), 20);
    assert_snapshot!(log.text(), @"
        1 ends
     3600 long starts with 1
    25200 released
    39600 ends
    39600 released
    46800 released
    68400 released
    ");
    assert_eq!(log.sim.accounts().outcomes()[0].restarts, 0);
    assert_eq!(log.idle(), 1);
}

#[test]
fn warm_node_that_never_shows_its_gpus_is_released_and_replaced() {
    let mut warm = pool();
    warm.ahead.warm = 1;
    let stage = setup(warm, exact_cloud(&[("a", 1, ClaimFailure::GpusMissing)]));
    let log = play(awake(stage), Policy::default(), 2);
    assert_eq!(log.times("released"), 1, "{}", log.text());
    assert_eq!(log.idle(), 1);
}
