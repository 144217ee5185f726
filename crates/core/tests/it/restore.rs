//! Observed state is true whether it fits or not: gangs that run already, claims from before, changed specs.

use insta::assert_snapshot;
use muster_core::Event;
use muster_core::event::{Refusal, RoleSeats, Stale};
use muster_core::gang::GangSpec;
use muster_core::id::{ClaimId, OfferingRef, PoolIdx};
use muster_core::plan::{Action, StopReason};
use muster_core::time::{Span, Time};
use muster_testkit::build;

use crate::fixture::Fixture;

/// Observes members of a gang's first role on nodes.
fn gang_found(fixture: &Fixture, gang: &str, on: &[(&str, u16)]) -> Event {
    let sitting = on.iter().map(|(node, members)| {
        let node = fixture.world.node_named(node).expect("a node");
        RoleSeats { role: 0, node, members: *members }
    });
    Event::GangFound { gang: fixture.id(gang), since: Time(0), sitting: sitting.collect() }
}

/// Finds a claim that was requested just now.
fn claim_found(claim: u32, offering: OfferingRef) -> Event {
    Event::ClaimFound { claim: ClaimId(claim), offering, asked: Time::MAX, launched: None }
}

#[test]
fn running_gang_that_is_found_has_its_seats() {
    let mut fixture = Fixture::new();
    fixture.node("a1", 8).node("a2", 8).gang(build::gang("train", 3, 4));
    let event = gang_found(&fixture, "train", &[("a1", 2), ("a2", 1)]);
    fixture.ok(event);
    assert_snapshot!(fixture.show(), @"
    node a1: 0 of 8 gpus, 98 cores free, 2 seats
    node a2: 4 of 8 gpus, 99 cores free, 1 seats
    queue default: 12 gpus
    gang train since 0s: Running, 0 restarts, 0 failed
    ");
}

/// Replaces a gang's members by these on these nodes.
fn members_replaced(fixture: &Fixture, spec: &GangSpec, on: &[(u16, &str, u16)]) -> Event {
    let sitting = on.iter().map(|(role, node, members)| {
        let node = fixture.world.node_named(node).expect("a node");
        RoleSeats { role: *role, node, members: *members }
    });
    Event::GangTurnedOut { spec: spec.clone(), sitting: sitting.collect() }
}

#[test]
fn replaced_members_use_the_gangs_own_and_free_capacity() {
    let mut fixture = Fixture::new();
    fixture.node("a1", 8).node("a2", 8).gang(build::gang("train", 8, 1));
    let event = gang_found(&fixture, "train", &[("a1", 6), ("a2", 2)]);
    fixture.ok(event);
    fixture.gang(build::gang("other", 1, 2));
    let event = gang_found(&fixture, "other", &[("a1", 1)]);
    fixture.ok(event);
    let mut spec = build::gang("train", 1, 4);
    spec.roles.push(build::role("rest", 2, 2));
    // A node of eight GPUs of which other pods hold two.
    let too_much = members_replaced(&fixture, &spec, &[(0, "a1", 1), (1, "a1", 2)]);
    assert_eq!(fixture.tell(too_much), Err(Refusal::Stale(Stale::Seat)));
    let too_few = members_replaced(&fixture, &spec, &[(0, "a1", 1), (1, "a2", 1)]);
    assert_eq!(fixture.tell(too_few), Err(Refusal::Stale(Stale::BelowMin)));
    let event = members_replaced(&fixture, &spec, &[(0, "a1", 1), (1, "a1", 1), (1, "a2", 1)]);
    fixture.ok(event);
    assert_snapshot!(fixture.show(), @"
    node a1: 0 of 8 gpus, 97 cores free, 3 seats
    node a2: 6 of 8 gpus, 99 cores free, 1 seats
    queue default: 10 gpus
    gang train since 0s: Running, 0 restarts, 0 failed
    gang other since 0s: Running, 0 restarts, 0 failed
    ");
}

#[test]
fn found_members_get_devices_when_their_node_shows_them() {
    let mut fixture = Fixture::new();
    let dark = build::node("a1", 0, &[]);
    fixture.ok(Event::NodeSeen(dark)).gang(build::gang("train", 1, 4)).gang(build::gang("o", 1, 8));
    let event = gang_found(&fixture, "train", &[("a1", 1)]);
    fixture.ok(event).node("a1", 8);
    assert_snapshot!(fixture.show(), @"
    node a1: 4 of 8 gpus, 99 cores free, 1 seats
    queue default: 4 gpus
    gang train since 0s: Running, 0 restarts, 0 failed
    gang o since 0s: Waiting, 0 restarts, 0 failed
    ");
    assert_eq!(fixture.admit("o", &[("a1", 0xff)]), Err(Stale::Seat.into()));
    let train = fixture.id("train");
    fixture.ok(Event::GangEnded(train));
    assert_eq!(fixture.admit("o", &[("a1", 0xff)]), Ok(()));
}

#[test]
fn finished_members_free_their_seats_and_the_others_stay() {
    let mut fixture = Fixture::new();
    fixture.node("a1", 8).node("a2", 8).gang(build::gang("train", 3, 4));
    for on in [&[("a1", 2), ("a2", 1)][..], &[("a1", 1)]] {
        let event = gang_found(&fixture, "train", on);
        fixture.ok(event);
    }
    assert_snapshot!(fixture.show(), @"
    node a1: 4 of 8 gpus, 99 cores free, 1 seats
    node a2: 8 of 8 gpus, 100 cores free, 0 seats
    queue default: 4 gpus
    gang train since 0s: Running, 0 restarts, 0 failed
    ");
    let train = fixture.id("train");
    fixture.ok(Event::GangEnded(train));
    assert_snapshot!(fixture.show(), @"
    node a1: 8 of 8 gpus, 100 cores free, 0 seats
    node a2: 8 of 8 gpus, 100 cores free, 0 seats
    ");
}

#[test]
fn found_members_above_capacity_count_and_block_others() {
    let mut fixture = Fixture::new();
    fixture.node("a1", 8).gang(build::gang("train", 3, 4)).gang(build::gang("other", 1, 1));
    let event = gang_found(&fixture, "train", &[("a1", 3)]);
    fixture.ok(event);
    assert_eq!(fixture.admit("other", &[("a1", 0x01)]), Err(Stale::Seat.into()));
    let train = fixture.id("train");
    fixture.ok(Event::GangEnded(train));
    assert_eq!(fixture.admit("other", &[("a1", 0x01)]), Ok(()));
}

#[test]
fn gang_found_on_an_unready_node_counts_as_running() {
    let mut fixture = Fixture::new();
    let mut shut = build::node("a1", 8, &[]);
    shut.ready = false;
    fixture.ok(Event::NodeSeen(shut)).gang(build::gang("train", 1, 8));
    let event = gang_found(&fixture, "train", &[("a1", 1)]);
    fixture.ok(event);
    assert_snapshot!(fixture.show(), @"
    node a1: 0 of 8 gpus, 99 cores free, 1 seats unusable
    queue default: 8 gpus
    gang train since 0s: Running, 0 restarts, 0 failed
    ");
}

#[test]
fn members_on_an_unknown_node_or_role_are_refused() {
    let mut fixture = Fixture::new();
    fixture.node("a1", 8).gang(build::gang("train", 1, 8));
    let (gang, since) = (fixture.id("train"), Time(0));
    let node = fixture.world.node_named("a1").expect("a node");
    let stale = Err(Refusal::Stale(Stale::Gang));
    assert_eq!(fixture.tell(Event::GangFound { gang, since, sitting: Vec::new() }), stale);
    let sitting = vec![RoleSeats { role: 1, node, members: 1 }];
    assert_eq!(fixture.tell(Event::GangFound { gang, since, sitting }), stale);
}

#[test]
fn found_claim_counts_also_above_the_pool_limit() {
    let mut fixture = Fixture::new();
    let mut pool = build::pool("p", vec![build::offering("a", 10.0)]);
    pool.limits.nodes = Some(1);
    fixture.ok(Event::PoolSet(pool));
    let offering = OfferingRef { pool: PoolIdx(0), slot: 0 };
    fixture.ok(claim_found(7, offering)).ok(claim_found(9, offering));
    assert_eq!(fixture.world.next_claim(), ClaimId(10));
    assert_eq!(fixture.world.claims().len(), 2);
    let nowhere = OfferingRef { pool: PoolIdx(0), slot: 3 };
    let refused = Err(Refusal::UnknownClaim(ClaimId(11)));
    assert_eq!(fixture.tell(claim_found(11, nowhere)), refused);
}

#[test]
fn found_claim_keeps_its_age() {
    let mut fixture = Fixture::new();
    fixture.ok(Event::PoolSet(build::pool("p", vec![build::offering("a", 10.0)]))).later(60);
    let offering = OfferingRef { pool: PoolIdx(0), slot: 0 };
    let mins = |mins| Time::ZERO + Span::mins(mins);
    let claim_at = |claim, asked, launched| Event::ClaimFound {
        claim: ClaimId(claim),
        offering,
        asked,
        launched,
    };
    fixture.ok(claim_at(1, mins(10), None)).ok(claim_at(2, mins(10), Some(mins(20))));
    // The process that stored it had a clock that is ahead.
    fixture.ok(claim_at(3, mins(90), Some(mins(95))));
    // Known state takes precedence over stored state.
    fixture.ok(claim_at(1, mins(1), Some(mins(2))));
    let times = fixture.world.claims().values().map(|claim| {
        let mins = |at: Time| at.since(Time::ZERO).0 / 60_000;
        format!("{:?} asked {} since {}", claim.state, mins(claim.requested), mins(claim.since))
    });
    assert_snapshot!(times.collect::<Vec<_>>().join("\n"), @"
    Requested asked 10 since 10
    Launched asked 10 since 20
    Launched asked 60 since 60
    ");
}

#[test]
fn stored_idle_time_is_restored_unless_the_node_is_in_use() {
    let mut fixture = Fixture::new();
    fixture.later(60).node("a1", 8).node("a2", 8).gang(build::gang("train", 1, 8));
    let event = gang_found(&fixture, "train", &[("a1", 1)]);
    fixture.ok(event);
    let idle = |name: &str, mins| Event::NodeIdle {
        name: name.into(),
        since: Time::ZERO + Span::mins(mins),
    };
    fixture.ok(idle("a1", 5)).ok(idle("a2", 5)).ok(idle("a2", 90));
    let since = |fixture: &Fixture, name| {
        let node = fixture.world.node_named(name).expect("a node");
        fixture.world.node(node).expect("there").idle_since.since(Time::ZERO).0 / 60_000
    };
    assert_eq!((since(&fixture, "a1"), since(&fixture, "a2")), (60, 5));
    let nowhere = Err(Refusal::UnknownNode("a3".into()));
    assert_eq!(fixture.tell(idle("a3", 5)), nowhere);
}

#[test]
fn order_and_claim_numbers_never_go_back() {
    let mut fixture = Fixture::new();
    fixture.ok(Event::NumbersFrom(50)).ok(Event::NumbersFrom(20));
    assert_eq!((fixture.world.next_claim(), fixture.world.next_order().0), (ClaimId(50), 50));
}

#[test]
fn changed_spec_keeps_the_gangs_place_in_the_queue() {
    let mut fixture = Fixture::new();
    fixture.node("a1", 8).gang(build::gang("train", 3, 4)).gang(build::gang("later", 1, 8));
    fixture.ok(Event::GangChanged(build::gang("train", 2, 4)));
    let first = fixture.world.waiting()[0].id;
    assert_eq!(first, fixture.id("train"));
    assert_eq!(fixture.admit("train", &[("a1", 0x0f), ("a1", 0xf0)]), Ok(()));
}

#[test]
fn gang_with_seats_cannot_change_its_requests() {
    let mut fixture = Fixture::new();
    fixture.node("a1", 8).gang(build::gang("train", 2, 4));
    assert_eq!(fixture.admit("train", &[("a1", 0x0f), ("a1", 0xf0)]), Ok(()));
    let stale = Err(Refusal::Stale(Stale::Gang));
    assert_eq!(fixture.tell(Event::GangChanged(build::gang("train", 2, 3))), stale);
    let mut urgent = build::gang("train", 2, 4);
    urgent.priority = 9;
    fixture.ok(Event::GangChanged(urgent));
    let gone = Err(Refusal::NoSuchGang("nobody".into()));
    assert_eq!(fixture.tell(Event::GangChanged(build::gang("nobody", 1, 1))), gone);
}

#[test]
fn raised_minimum_applies_when_a_running_gang_starts_again() {
    let mut fixture = Fixture::new();
    fixture.node("a1", 8).gang(build::gang("train", 2, 4));
    assert_eq!(fixture.admit("train", &[("a1", 0x0f), ("a1", 0xf0)]), Ok(()));
    let gang = fixture.id("train");
    fixture.ok(Event::GangStarted(gang)).ok(Event::GangChanged(build::gang("train", 4, 4)));
    let sizes = |fixture: &Fixture| {
        let role = &fixture.world.gang(gang).expect("a gang").spec.roles[0];
        (role.min, role.max)
    };
    assert_eq!(sizes(&fixture), (2, 2));
    let stop = Action::Stop { gang, reason: StopReason::Moved };
    fixture.ok(Event::Decided(stop)).ok(Event::GangStopped(gang));
    assert_eq!(sizes(&fixture), (4, 4));
}

#[test]
fn reverted_spec_applies_when_a_running_gang_starts_again() {
    let mut fixture = Fixture::new();
    fixture.node("a1", 8).gang(build::gang("train", 2, 4));
    assert_eq!(fixture.admit("train", &[("a1", 0x0f), ("a1", 0xf0)]), Ok(()));
    let gang = fixture.id("train");
    fixture.ok(Event::GangChanged(build::gang("train", 4, 4)));
    fixture.ok(Event::GangChanged(build::gang("train", 2, 4)));
    let stop = Action::Stop { gang, reason: StopReason::Moved };
    fixture.ok(Event::Decided(stop)).ok(Event::GangStopped(gang));
    assert_eq!(fixture.world.gang(gang).expect("a gang").spec.roles[0].min, 2);
}
