//! Orders that were placed before a restart go on from where they are.

use insta::assert_snapshot;
use muster_core::Event;
use muster_core::event::{Refusal, Sitting, Stale};
use muster_core::id::{ClaimId, OfferingRef, OrderId, PoolIdx};
use muster_core::order::{OrderSpec, Place};
use muster_core::plan::Action;
use muster_core::time::{Span, Time};
use muster_testkit::build;

use crate::books::Books;

/// One node here, one pool, and a gang of two that needs both, all of it just found.
fn found() -> Books {
    let mut books = Books::new();
    books.node("a1", 8).ok(Event::PoolSet(build::pool("p", vec![build::offering("a", 10.0)])));
    books.later(9).gang(build::gang("ns/train", 2, 4));
    books
}

fn claim_found(books: &mut Books, claim: u32) -> ClaimId {
    let claim = ClaimId(claim);
    let offering = OfferingRef { pool: PoolIdx(0), slot: 0 };
    let asked = Time::ZERO;
    books.ok(Event::ClaimFound { claim, offering, asked, launched: Some(asked) });
    claim
}

/// An order of the first pool, with a member on the node here and one on this claim.
fn order(books: &Books, claim: ClaimId, here: u64) -> OrderSpec {
    let mut order = books.order("ns/train", &[("a1", here)], &[0x0f]);
    (order.id, order.claims[0].0) = (OrderId(3), claim);
    order.reservations[1].place = Place::Claim(claim);
    order
}

fn order_found(order: OrderSpec) -> Event {
    Event::OrderFound { order, placed: Time::ZERO + Span::mins(4), top_ups: 2 }
}

#[test]
fn an_order_goes_on_with_a_claim_that_is_ready_by_now() {
    let mut books = found();
    let claim = claim_found(&mut books, 7);
    books.ok(Event::NodeSeen(books.claim_node(claim, 8)));
    let spec = order(&books, claim, 0x0f);
    assert_eq!(
        books.tell(Event::Decided(Action::Order(spec.clone()))),
        Err(Stale::Order.into()),
        "a new one would have to ask for a node that is still to come"
    );
    books.ok(order_found(spec));
    assert_snapshot!(books.show(), @"
    node a1: 4 of 8 gpus, 99 cores free, 1 seats
    node c7: 4 of 8 gpus, 99 cores free, 1 seats
    queue default: 8 gpus
    pool p: 1 nodes, 8 gpus, 10.00 hourly: a*1
    claim c7 p-7: Ready
    gang ns/train since 9m: Assembling(o3), 0 restarts, 0 failed
    ");
    let order = &books.world.orders()[&OrderId(3)];
    assert_eq!((order.placed, order.top_ups), (Time::ZERO + Span::mins(4), 2));
    assert_eq!(books.world.next_order(), OrderId(4));
}

#[test]
fn an_order_goes_on_with_a_claim_that_nobody_has_asked_for_yet() {
    let mut books = found();
    claim_found(&mut books, 9);
    let spec = order(&books, ClaimId(7), 0x0f);
    books.ok(order_found(spec));
    assert_snapshot!(books.show(), @"
    node a1: 4 of 8 gpus, 99 cores free, 1 seats
    queue default: 8 gpus
    pool p: 2 nodes, 16 gpus, 20.00 hourly: a*2
    claim c7 ns-train-3-0: Requested
    claim c9 p-9: Launched
    gang ns/train since 9m: Assembling(o3), 0 restarts, 0 failed
    ");
}

#[test]
fn seats_of_an_order_are_on_other_devices_where_somebody_was_found_on_theirs() {
    let mut books = found();
    books.gang(build::gang("other", 1, 4));
    let node = books.world.node_named("a1").expect("a node");
    let sitting = vec![Sitting { role: 0, node, members: 1 }];
    let gang = books.id("other");
    books.ok(Event::GangFound { gang, since: Time::ZERO, sitting });
    let taken = books.world.gang(gang).expect("there").seats[0].devices;
    let claim = claim_found(&mut books, 7);
    let spec = order(&books, claim, taken.0);
    books.ok(order_found(spec));
    let held = &books.world.orders()[&OrderId(3)].held;
    assert_eq!((held.len(), held[0].devices.0 & taken.0), (1, 0), "{held:?}");
    // Where there is none at all it does not go on.
    let mut books = found();
    books.gang(build::gang("other", 2, 4));
    let sitting = vec![Sitting { role: 0, node, members: 2 }];
    let gang = books.id("other");
    books.ok(Event::GangFound { gang, since: Time::ZERO, sitting });
    let claim = claim_found(&mut books, 7);
    let spec = order(&books, claim, taken.0);
    assert_eq!(books.tell(order_found(spec)), Err(Stale::Seat.into()));
}

#[test]
fn an_order_does_not_go_on_with_what_is_anothers_or_on_its_way_out() {
    let mut books = found();
    let claim = claim_found(&mut books, 7);
    books.ok(Event::Decided(Action::Release { claim }));
    let spec = order(&books, claim, 0x0f);
    assert_eq!(books.tell(order_found(spec)), Err(Stale::Order.into()));
    let mut books = found();
    let claim = claim_found(&mut books, 7);
    let mut first = order(&books, claim, 0x0f);
    books.gang(build::gang("other", 2, 4));
    first.gang = books.id("other");
    books.ok(order_found(first));
    let mut second = order(&books, claim, 0xf0);
    second.id = OrderId(4);
    assert_eq!(books.tell(order_found(second)), Err(Stale::Order.into()));
}

#[test]
fn a_gang_that_is_found_waiting_has_waited_for_as_long_as_it_has() {
    let mut books = found();
    books.gang(build::gang("first", 1, 1)).gang(build::gang("second", 1, 1));
    let mins = |mins| Time::ZERO + Span::mins(mins);
    let waits = |books: &Books, gang, submitted, since| {
        let gang = books.id(gang);
        Event::GangWaits { gang, submitted: mins(submitted), since: mins(since) }
    };
    let (one, two, three) = (
        waits(&books, "second", 1, 2),
        waits(&books, "first", 1, 3),
        waits(&books, "ns/train", 99, 99),
    );
    books.ok(one).ok(two).ok(three);
    let order: Vec<&str> = books
        .world
        .waiting()
        .iter()
        .map(|one| &*books.world.gang(one.id).expect("there").spec.name)
        .collect();
    assert_eq!(order, ["second", "first", "ns/train"]);
    let train = books.world.gang(books.id("ns/train")).expect("there");
    assert_eq!((train.submitted, train.waits_since), (mins(9), mins(9)), "not from the future");
    let nobody = muster_core::id::GangId(99);
    let event = Event::GangWaits { gang: nobody, submitted: mins(1), since: mins(1) };
    assert_eq!(books.tell(event), Err(Refusal::UnknownGang(nobody)));
}
