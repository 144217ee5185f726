//! The learned state of a World is passed on to the next World.

use muster_core::gang::GangSpec;
use muster_core::pool::PoolSpec;
use muster_core::proactive::ForecastSpec;
use muster_core::queue::QueueSpec;
use muster_core::remembered::Remembered;
use muster_core::time::{Span, Time};
use muster_core::{Event, World};
use muster_testkit::build;

use crate::fixture::Fixture;

fn minutes(minutes: u64) -> Time {
    Time::ZERO + Span::mins(minutes)
}

/// A pool with a forecast.
fn pool() -> PoolSpec {
    let mut pool = build::pool("gpu", vec![build::offering("a", 10.0)]);
    pool.ahead.forecast = Some(ForecastSpec::default());
    pool
}

/// A World with a queue and a pool.
fn world() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.ok(Event::QueueSet(QueueSpec::open("research"))).ok(Event::PoolSet(pool()));
    fixture
}

fn gang(name: &str) -> GangSpec {
    let mut gang = build::gang(name, 1, 8);
    (gang.queue, gang.user) = ("research".into(), "ann".into());
    gang
}

/// An hour in which two gangs arrived and one of them ran for half of it.
fn after_an_hour() -> Fixture {
    let mut fixture = world();
    fixture.ok(Event::Synced).node("a1", 8).gang(gang("one"));
    fixture.admit("one", &[("a1", 0xff)]).expect("there is room");
    let one = fixture.id("one");
    fixture.ok(Event::GangStarted(one)).later(30).ok(Event::GangEnded(one));
    fixture.later(10).gang(gang("two")).later(20).ok(Event::Tick);
    fixture
}

/// A later World, before it knows any gang.
fn after(remembered: Remembered) -> Fixture {
    let mut fixture = world();
    fixture.later(60).ok(Event::Remembered(Box::new(remembered)));
    fixture
}

fn arrivals(world: &World) -> Vec<u64> {
    let pool = world.pools().values().next().expect("a pool");
    pool.demand.arrivals().iter().map(|one| one.at.since(Time::ZERO).0 / 60_000).collect()
}

#[test]
fn usage_run_times_and_arrivals_are_passed_on() {
    let before = after_an_hour().world.remembered();
    assert!(before.queues["research"].gpu_milli > 0);
    assert!(before.queues["research"].amounts.contains_key("cpu"));
    assert_eq!(before.users["ann"][0].lasted, Span::mins(30));
    let next = after(before.clone());
    assert_eq!(arrivals(&next.world), [0, 40]);
    assert_eq!(next.world.remembered(), before);
}

#[test]
fn restored_usage_keeps_decaying() {
    let before = after_an_hour().world.remembered();
    let mut next = after(before.clone());
    next.later(24 * 60).ok(Event::Tick);
    let (then, now) = (&before.queues["research"], &next.world.remembered().queues["research"]);
    assert_eq!(now.gpu_milli, (then.gpu_milli as f64 / 2.0).round() as u64, "half after a day");
}

#[test]
fn found_gang_is_an_arrival_only_if_submitted_after_the_record() {
    let mut next = after(after_an_hour().world.remembered());
    for (name, minute) in [("two", 40), ("three", 65)] {
        next.later(10).gang(gang(name));
        let (gang, at) = (next.id(name), minutes(minute));
        next.ok(Event::GangWaits { gang, submitted: at, since: at });
    }
    assert_eq!(arrivals(&next.world), [0, 40, 65]);
    // From now on every arrival is observed.
    next.ok(Event::Synced).gang(gang("four"));
    assert_eq!(arrivals(&next.world), [0, 40, 65, 80]);
}

#[test]
fn gang_from_before_recording_is_not_an_arrival() {
    let mut first = Fixture::new();
    first.later(60).ok(Event::QueueSet(QueueSpec::open("research"))).ok(Event::PoolSet(pool()));
    for (name, minute) in [("old", 5), ("older", 4)] {
        first.gang(gang(name));
        let (gang, at) = (first.id(name), minutes(minute));
        first.ok(Event::GangWaits { gang, submitted: at, since: at });
    }
    first.ok(Event::Synced);
    assert_eq!(arrivals(&first.world), [0_u64; 0]);
}

#[test]
fn unknown_names_and_future_times_are_skipped() {
    let mut before = after_an_hour().world.remembered();
    before.queues.insert("gone".into(), before.queues["research"].clone());
    before.pools.insert("gone".into(), before.pools["gpu"].clone());
    before.pools.get_mut("gpu").expect("a pool").until = minutes(39);
    before.users.get_mut("ann").expect("a user")[0].ended = minutes(61);
    let next = after(before);
    assert_eq!(arrivals(&next.world), [0]);
    assert!(next.world.remembered().users.is_empty());
}
