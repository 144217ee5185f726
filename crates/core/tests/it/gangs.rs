//! Gangs are submitted, start whole, stop whole and end.

use insta::assert_snapshot;
use muster_core::Event;
use muster_core::event::{Refusal, Stale};
use muster_core::plan::{Action, StopReason};
use muster_core::queue::QueueSpec;
use muster_testkit::build;

use crate::fixture::Fixture;

#[test]
fn gang_is_admitted_whole_and_frees_everything_at_its_end() {
    let mut fixture = Fixture::new();
    fixture.node("a1", 8).gang(build::gang("train", 2, 4));
    let train = fixture.id("train");
    assert_eq!(fixture.admit("train", &[("a1", 0x0f), ("a1", 0xf0)]), Ok(()));
    assert_snapshot!(fixture.show(), @"
    node a1: 0 of 8 gpus, 98 cores free, 2 seats
    queue default: 8 gpus
    gang train since 0s: Admitted, 0 restarts, 0 failed
    ");
    fixture.ok(Event::GangStarted(train)).ok(Event::GangEnded(train));
    assert_snapshot!(fixture.show(), @"node a1: 8 of 8 gpus, 100 cores free, 0 seats");
}

#[test]
fn admission_that_does_not_fit_changes_nothing() {
    let mut fixture = Fixture::new();
    fixture.node("a1", 8).node("a2", 8).gang(build::gang("train", 2, 4));
    let mut shut = build::node("a3", 8, &[]);
    shut.ready = false;
    fixture.ok(Event::NodeSeen(shut));
    for (why, seats) in [
        (Stale::BelowMin, &[("a1", 0x0f)][..]),
        (Stale::BelowMin, &[("a1", 0x0f), ("a1", 0xf0), ("a2", 0x0f)]),
        (Stale::Seat, &[("a1", 0x0f), ("a1", 0x1e)]), // one device twice
        (Stale::Seat, &[("a1", 0x0f), ("a2", 0x07)]), // three devices for four
        (Stale::Seat, &[("a1", 0x0f), ("a2", 0xf00)]), // devices that are not there
        (Stale::Seat, &[("a1", 0x0f), ("a3", 0x0f)]), // a node that is not ready
        (Stale::Seat, &[("a1", 0x0f), ("a9", 0x0f)]), // no node at all
    ] {
        assert_eq!(fixture.admit("train", seats), Err(why.into()), "{seats:?}");
    }
    assert_eq!(fixture.admit("train", &[("a1", 0x0f), ("a2", 0x0f)]), Ok(()));
}

#[test]
fn queue_limits_are_checked_up_to_the_root() {
    let mut fixture = Fixture::new();
    let mut org = QueueSpec::open("org");
    org.limit.gpu_milli = Some(4_000);
    let team = QueueSpec { parent: Some("org".into()), ..QueueSpec::open("team") };
    fixture.node("a1", 8).ok(Event::QueueSet(org)).ok(Event::QueueSet(team));
    for name in ["one", "two"] {
        let mut spec = build::gang(name, 1, 3);
        spec.queue = "team".into();
        fixture.gang(spec);
    }
    assert_eq!(fixture.admit("one", &[("a1", 0x07)]), Ok(()));
    assert_eq!(fixture.admit("two", &[("a1", 0x38)]), Err(Stale::Queue.into()));
    assert_snapshot!(fixture.show(), @"
    node a1: 5 of 8 gpus, 99 cores free, 1 seats
    queue org: 3 gpus
    queue team: 3 gpus
    gang one since 0s: Admitted, 0 restarts, 0 failed
    gang two since 0s: Waiting, 0 restarts, 0 failed
    ");
}

#[test]
fn requeued_gang_keeps_its_age() {
    let mut fixture = Fixture::new();
    fixture.later(5).node("a1", 8).node("a2", 8).gang(build::gang("train", 2, 8));
    let train = fixture.id("train");
    for _ in 0..2 {
        fixture.later(60).node("a2", 8);
        assert_eq!(fixture.admit("train", &[("a1", 0xff), ("a2", 0xff)]), Ok(()));
        fixture.ok(Event::GangStarted(train)).ok(Event::NodeGone("a2".into()));
        let reason = StopReason::NodeLost(muster_core::id::NodeIdx(1));
        fixture.ok(Event::Decided(Action::Stop { gang: train, reason }));
        fixture.ok(Event::GangStopped(train));
    }
    assert_snapshot!(fixture.show(), @"
    node a1: 8 of 8 gpus, 100 cores free, 0 seats
    gang train since 5m: Waiting, 2 restarts, 0 failed
    ");
}

#[test]
fn gang_on_a_lost_node_is_broken_until_it_has_stopped() {
    let mut fixture = Fixture::new();
    fixture.node("a1", 8).node("a2", 8).gang(build::gang("train", 2, 8));
    let train = fixture.id("train");
    assert_eq!(fixture.admit("train", &[("a1", 0xff), ("a2", 0xff)]), Ok(()));
    fixture.ok(Event::NodeGone("a1".into()));
    assert_eq!(fixture.world.broken().len(), 1);
    let lost = fixture.world.broken()[&train];
    assert_eq!(fixture.world.node_name(lost).map(|name| &**name), Some("a1"), "not yet forgotten");
    // A node of the same name is another node: the lost members are not on it.
    fixture.node("a1", 8);
    assert_ne!(fixture.world.node_named("a1"), Some(lost));
    assert_snapshot!(fixture.show(), @"
    node a2: 0 of 8 gpus, 99 cores free, 1 seats
    node a1: 8 of 8 gpus, 100 cores free, 0 seats
    queue default: 16 gpus
    gang train since 0s: Admitted, 0 restarts, 0 failed
    ");
    fixture.ok(Event::Decided(Action::Stop { gang: train, reason: StopReason::NodeLost(lost) }));
    fixture.ok(Event::GangStopped(train));
    assert!(fixture.world.broken().is_empty() && fixture.world.node_name(lost).is_none());
    assert_snapshot!(fixture.show(), @"
    node a2: 8 of 8 gpus, 100 cores free, 0 seats
    node a1: 8 of 8 gpus, 100 cores free, 0 seats
    gang train since 0s: Waiting, 1 restarts, 0 failed
    ");
}

#[test]
fn node_slot_is_reused_only_when_unreferenced() {
    let mut fixture = Fixture::new();
    fixture.node("a1", 8).gang(build::gang("train", 1, 8));
    let (train, slot) = (fixture.id("train"), fixture.world.node_named("a1"));
    assert_eq!(fixture.admit("train", &[("a1", 0xff)]), Ok(()));
    fixture.ok(Event::NodeGone("a1".into())).node("b1", 8);
    assert_ne!(fixture.world.node_named("b1"), slot, "its member has not been stopped");
    fixture.ok(Event::GangEnded(train)).node("b2", 8);
    assert_eq!(fixture.world.node_named("b2"), slot);
}

#[test]
fn cancelled_gang_is_removed_once_it_holds_nothing() {
    let mut fixture = Fixture::new();
    fixture.node("a1", 8).gang(build::gang("idle", 1, 8)).gang(build::gang("busy", 1, 8));
    let (idle, busy) = (fixture.id("idle"), fixture.id("busy"));
    assert_eq!(fixture.admit("busy", &[("a1", 0xff)]), Ok(()));
    fixture
        .ok(Event::GangCancelled(idle))
        .ok(Event::GangCancelled(busy))
        .ok(Event::GangCancelled(busy));
    assert!(fixture.world.gang(idle).is_none() && fixture.world.cancelled().contains(&busy));
    fixture.ok(Event::Decided(Action::Stop { gang: busy, reason: StopReason::Cancelled }));
    fixture.ok(Event::GangStopped(busy));
    assert_snapshot!(fixture.show(), @"node a1: 8 of 8 gpus, 100 cores free, 0 seats");
}

#[test]
fn events_in_the_wrong_phase_are_refused() {
    let mut fixture = Fixture::new();
    fixture.node("a1", 8).gang(build::gang("train", 1, 8));
    let train = fixture.id("train");
    let stop = Event::Decided(Action::Stop { gang: train, reason: StopReason::Cancelled });
    for event in
        [Event::GangStarted(train), Event::GangStopped(train), Event::GangEnded(train), stop]
    {
        assert_eq!(fixture.tell(event), Err(Stale::Gang.into()));
    }
    assert_eq!(fixture.admit("train", &[("a1", 0xff)]), Ok(()));
    assert_eq!(
        fixture.tell(Event::GangStopped(train)),
        Err(Stale::Gang.into()),
        "it was not told to"
    );
    fixture.ok(Event::GangEnded(train));
    assert_eq!(fixture.tell(Event::GangEnded(train)), Err(Refusal::UnknownGang(train)));
}

#[test]
fn invalid_gang_spec_is_refused() {
    let mut fixture = Fixture::new();
    fixture.gang(build::gang("train", 1, 8));
    let name = |text: &str| std::sync::Arc::from(text);
    let mut lost = build::gang("lost", 1, 8);
    lost.queue = "nowhere".into();
    let mut empty = build::gang("empty", 1, 8);
    empty.roles.clear();
    let mut backward = build::gang("backward", 3, 8);
    backward.roles[0].max = 2;
    for (spec, why) in [
        (build::gang("train", 2, 8), Refusal::DuplicateGang(name("train"))),
        (lost, Refusal::UnknownQueue(name("nowhere"))),
        (empty, Refusal::EmptyGang(name("empty"))),
        (build::gang("nobody", 0, 8), Refusal::EmptyGang(name("nobody"))),
        (backward, Refusal::EmptyGang(name("backward"))),
        (build::within(build::gang("far", 1, 8), "shelf"), Refusal::UnknownLevel(name("shelf"))),
    ] {
        assert_eq!(fixture.tell(Event::GangSubmitted(spec)), Err(why));
    }
}

#[test]
fn uncountable_request_is_refused_without_overflow() {
    let mut fixture = Fixture::new();
    let mut spec = build::gang("much", 1, 8);
    let mut role = spec.roles[0].clone();
    role.request.amounts.insert("memory".into(), 1 << 50);
    (role.min, role.max) = (1, 8_000);
    spec.roles = (0..3)
        .map(|at| {
            let name = format!("r{at}").into();
            muster_core::gang::RoleSpec { name, min: 8_000, ..role.clone() }
        })
        .collect();
    let refusal = Refusal::TooMuch("much".into(), "memory".into());
    assert_eq!(fixture.tell(Event::GangSubmitted(spec.clone())), Err(refusal));
    spec.roles.truncate(1);
    assert_eq!(fixture.tell(Event::GangSubmitted(spec)), Ok(()));
}
