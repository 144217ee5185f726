//! What a World knew is known to the one that comes after it.

use muster_core::gang::GangSpec;
use muster_core::pool::PoolSpec;
use muster_core::proactive::ForecastSpec;
use muster_core::queue::QueueSpec;
use muster_core::remembered::Remembered;
use muster_core::time::{Span, Time};
use muster_core::{Event, World};
use muster_testkit::build;

use crate::books::Books;

fn minutes(minutes: u64) -> Time {
    Time::ZERO + Span::mins(minutes)
}

/// A pool that wants to know what to expect.
fn pool() -> PoolSpec {
    let mut pool = build::pool("gpu", vec![build::offering("a", 10.0)]);
    pool.ahead.forecast = Some(ForecastSpec::default());
    pool
}

/// A World with a queue and a pool.
fn world() -> Books {
    let mut books = Books::new();
    books.ok(Event::QueueSet(QueueSpec::open("research"))).ok(Event::PoolSet(pool()));
    books
}

fn gang(name: &str) -> GangSpec {
    let mut gang = build::gang(name, 1, 8);
    (gang.queue, gang.user) = ("research".into(), "ann".into());
    gang
}

/// An hour in which two gangs came and one of them ran for half of it.
fn an_hour() -> Books {
    let mut books = world();
    books.ok(Event::Synced).node("a1", 8).gang(gang("one"));
    books.admit("one", &[("a1", 0xff)]).expect("there is room");
    let one = books.id("one");
    books.ok(Event::GangStarted(one)).later(30).ok(Event::GangEnded(one));
    books.later(10).gang(gang("two")).later(20).ok(Event::Tick);
    books
}

/// A World that comes after another, when it was not told of anybody yet.
fn after(remembered: Remembered) -> Books {
    let mut books = world();
    books.later(60).ok(Event::Remembered(Box::new(remembered)));
    books
}

fn arrivals(world: &World) -> Vec<u64> {
    let pool = world.pools().values().next().expect("a pool");
    pool.demand.arrivals().iter().map(|one| one.at.since(Time::ZERO).0 / 60_000).collect()
}

#[test]
fn what_queues_have_used_how_long_gangs_ran_and_who_came_is_handed_on() {
    let before = an_hour().world.remembered();
    assert!(before.queues["research"].gpu_milli > 0);
    assert!(before.queues["research"].amounts.contains_key("cpu"));
    assert_eq!(before.users["ann"][0].lasted, Span::mins(30));
    let next = after(before.clone());
    assert_eq!(arrivals(&next.world), [0, 40]);
    assert_eq!(next.world.remembered(), before);
}

#[test]
fn what_a_queue_has_used_goes_on_fading() {
    let before = an_hour().world.remembered();
    let mut next = after(before.clone());
    next.later(24 * 60).ok(Event::Tick);
    let (then, now) = (&before.queues["research"], &next.world.remembered().queues["research"]);
    assert_eq!(now.gpu_milli, (then.gpu_milli as f64 / 2.0).round() as u64, "half after a day");
}

#[test]
fn who_is_found_was_counted_already_unless_it_came_later() {
    let mut next = after(an_hour().world.remembered());
    for (name, minute) in [("two", 40), ("three", 65)] {
        next.later(10).gang(gang(name));
        let (gang, at) = (next.id(name), minutes(minute));
        next.ok(Event::GangWaits { gang, submitted: at, since: at });
    }
    assert_eq!(arrivals(&next.world), [0, 40, 65]);
    // From now on everybody is seen to come.
    next.ok(Event::Synced).gang(gang("four"));
    assert_eq!(arrivals(&next.world), [0, 40, 65, 80]);
}

#[test]
fn who_was_there_before_anybody_counted_did_not_come_just_now() {
    let mut first = Books::new();
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
fn what_is_not_there_any_more_and_what_is_yet_to_be_is_passed_over() {
    let mut before = an_hour().world.remembered();
    before.queues.insert("gone".into(), before.queues["research"].clone());
    before.pools.insert("gone".into(), before.pools["gpu"].clone());
    before.pools.get_mut("gpu").expect("a pool").until = minutes(39);
    before.users.get_mut("ann").expect("a user")[0].ended = minutes(61);
    let next = after(before);
    assert_eq!(arrivals(&next.world), [0]);
    assert!(next.world.remembered().users.is_empty());
}
