//! Orders that were placed before a restart continue from where they are.

use insta::assert_snapshot;
use muster_core::Event;
use muster_core::event::{Refusal, RoleSeats, Stale};
use muster_core::id::{ClaimId, OfferingRef, OrderId, PoolIdx};
use muster_core::order::{OrderSpec, Place};
use muster_core::plan::Action;
use muster_core::time::{Span, Time};
use muster_testkit::build;

use crate::fixture::Fixture;

/// One node here, one pool, and a gang of two that needs both, all of it just found.
fn restarted() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.node("a1", 8).ok(Event::PoolSet(build::pool("p", vec![build::offering("a", 10.0)])));
    fixture.later(9).gang(build::gang("ns/train", 2, 4));
    fixture
}

fn claim_found(fixture: &mut Fixture, claim: u32) -> ClaimId {
    let claim = ClaimId(claim);
    let offering = OfferingRef { pool: PoolIdx(0), slot: 0 };
    let asked = Time::ZERO;
    fixture.ok(Event::ClaimFound { claim, offering, asked, launched: Some(asked) });
    claim
}

/// An order of the first pool, with a member on the node here and one on this claim.
fn order(fixture: &Fixture, claim: ClaimId, here: u64) -> OrderSpec {
    let mut order = fixture.order("ns/train", &[("a1", here)], &[0x0f]);
    (order.id, order.claims[0].0) = (OrderId(3), claim);
    order.reservations[1].place = Place::Claim(claim);
    order
}

fn order_found(order: OrderSpec) -> Event {
    Event::OrderFound { order, placed: Time::ZERO + Span::mins(4), top_ups: 2 }
}

#[test]
fn restored_order_continues_with_a_ready_claim() {
    let mut fixture = restarted();
    let claim = claim_found(&mut fixture, 7);
    fixture.ok(Event::NodeSeen(fixture.claim_node(claim, 8)));
    let spec = order(&fixture, claim, 0x0f);
    assert_eq!(
        fixture.tell(Event::Decided(Action::Order(spec.clone()))),
        Err(Stale::Order.into()),
        "a new one would have to ask for a node that is still to come"
    );
    fixture.ok(order_found(spec));
    assert_snapshot!(fixture.show(), @"
    node a1: 4 of 8 gpus, 99 cores free, 1 seats
    node c7: 4 of 8 gpus, 99 cores free, 1 seats
    queue default: 8 gpus
    pool p: 1 nodes, 8 gpus, 10.00 hourly: a*1
    claim c7 p-7: Ready
    gang ns/train since 9m: Assembling(o3), 0 restarts, 0 failed
    ");
    let order = &fixture.world.orders()[&OrderId(3)];
    assert_eq!((order.placed, order.top_ups), (Time::ZERO + Span::mins(4), 2));
    assert_eq!(fixture.world.next_order(), OrderId(4));
}

#[test]
fn restored_order_continues_with_an_unrequested_claim() {
    let mut fixture = restarted();
    claim_found(&mut fixture, 9);
    let spec = order(&fixture, ClaimId(7), 0x0f);
    fixture.ok(order_found(spec));
    assert_snapshot!(fixture.show(), @"
    node a1: 4 of 8 gpus, 99 cores free, 1 seats
    queue default: 8 gpus
    pool p: 2 nodes, 16 gpus, 20.00 hourly: a*2
    claim c7 ns-train-3-0: Requested
    claim c9 p-9: Launched
    gang ns/train since 9m: Assembling(o3), 0 restarts, 0 failed
    ");
}

#[test]
fn restored_order_takes_other_devices_where_its_own_are_taken() {
    let mut fixture = restarted();
    fixture.gang(build::gang("other", 1, 4));
    let node = fixture.world.node_named("a1").expect("a node");
    let sitting = vec![RoleSeats { role: 0, node, members: 1 }];
    let gang = fixture.id("other");
    fixture.ok(Event::GangFound { gang, since: Time::ZERO, sitting });
    let taken = fixture.world.gang(gang).expect("there").seats[0].devices;
    let claim = claim_found(&mut fixture, 7);
    let spec = order(&fixture, claim, taken.0);
    fixture.ok(order_found(spec));
    let held = &fixture.world.orders()[&OrderId(3)].held;
    assert_eq!((held.len(), held[0].devices.0 & taken.0), (1, 0), "{held:?}");
    // Without any free device the order does not continue.
    let mut fixture = restarted();
    fixture.gang(build::gang("other", 2, 4));
    let sitting = vec![RoleSeats { role: 0, node, members: 2 }];
    let gang = fixture.id("other");
    fixture.ok(Event::GangFound { gang, since: Time::ZERO, sitting });
    let claim = claim_found(&mut fixture, 7);
    let spec = order(&fixture, claim, taken.0);
    assert_eq!(fixture.tell(order_found(spec)), Err(Stale::Seat.into()));
}

#[test]
fn restored_order_is_refused_on_foreign_or_releasing_claims() {
    let mut fixture = restarted();
    let claim = claim_found(&mut fixture, 7);
    fixture.ok(Event::Decided(Action::Release { claim }));
    let spec = order(&fixture, claim, 0x0f);
    assert_eq!(fixture.tell(order_found(spec)), Err(Stale::Order.into()));
    let mut fixture = restarted();
    let claim = claim_found(&mut fixture, 7);
    let mut first = order(&fixture, claim, 0x0f);
    fixture.gang(build::gang("other", 2, 4));
    first.gang = fixture.id("other");
    fixture.ok(order_found(first));
    let mut second = order(&fixture, claim, 0xf0);
    second.id = OrderId(4);
    assert_eq!(fixture.tell(order_found(second)), Err(Stale::Order.into()));
}

#[test]
fn found_waiting_gang_keeps_its_wait() {
    let mut fixture = restarted();
    fixture.gang(build::gang("first", 1, 1)).gang(build::gang("second", 1, 1));
    let mins = |mins| Time::ZERO + Span::mins(mins);
    let waits = |fixture: &Fixture, gang, submitted, since| {
        let gang = fixture.id(gang);
        Event::GangWaits { gang, submitted: mins(submitted), since: mins(since) }
    };
    let (one, two, three) = (
        waits(&fixture, "second", 1, 2),
        waits(&fixture, "first", 1, 3),
        waits(&fixture, "ns/train", 99, 99),
    );
    fixture.ok(one).ok(two).ok(three);
    let order: Vec<&str> = fixture
        .world
        .waiting()
        .iter()
        .map(|one| &*fixture.world.gang(one.id).expect("there").spec.name)
        .collect();
    assert_eq!(order, ["second", "first", "ns/train"]);
    let train = fixture.world.gang(fixture.id("ns/train")).expect("there");
    assert_eq!((train.submitted, train.waits_since), (mins(9), mins(9)), "not from the future");
    let nobody = muster_core::id::GangId(99);
    let event = Event::GangWaits { gang: nobody, submitted: mins(1), since: mins(1) };
    assert_eq!(fixture.tell(event), Err(Refusal::UnknownGang(nobody)));
}
