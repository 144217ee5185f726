//! Nodes for nobody: asked for, put off, replaced, stopped, woken, retired. Each decision is accepted once, is the
//! same when seen twice, and is refused without a trace when it is stale.

use insta::assert_snapshot;
use muster_core::Event;
use muster_core::event::{Refusal, Stale};
use muster_core::id::{ClaimId, OfferingRef, OrderId, PoolIdx};
use muster_core::order::{Claim, ClaimFailure, ClaimStage, ClaimState, Place};
use muster_core::plan::Action;
use muster_core::pool::{Lack, PoolSpec};
use muster_core::resource;
use muster_core::time::Span;
use muster_testkit::build;

use crate::books::Books;

const ZONE_A: OfferingRef = OfferingRef { pool: PoolIdx(0), slot: 0 };
const ZONE_B: OfferingRef = OfferingRef { pool: PoolIdx(0), slot: 1 };
const C0: ClaimId = ClaimId(0);
const C1: ClaimId = ClaimId(1);
const C2: ClaimId = ClaimId(2);

/// Two zones; nodes of the first can be stopped.
fn two_zones() -> PoolSpec {
    let mut spec = build::pool("p", vec![build::offering("a", 10.0), build::offering("b", 12.0)]);
    spec.offerings[0].start_time = Some(Span::mins(1));
    spec
}

fn with(spec: PoolSpec) -> Books {
    let mut books = Books::new();
    books.ok(Event::PoolSet(spec));
    books
}

fn stock(claims: &[(ClaimId, OfferingRef)]) -> Event {
    Event::Decided(Action::Stock { claims: claims.to_vec() })
}
fn retry(claim: ClaimId, attempt: u32) -> Event {
    Event::Decided(Action::Retry { claim, attempt })
}
fn park(claim: ClaimId) -> Event {
    Event::Decided(Action::Park { claim })
}
fn retire(claim: ClaimId) -> Event {
    Event::Decided(Action::Retire { claim })
}
fn release(claim: ClaimId) -> Event {
    Event::Decided(Action::Release { claim })
}
fn top_up(order: OrderId, lost: ClaimId, claim: ClaimId, offering: OfferingRef) -> Event {
    Event::Decided(Action::TopUp { order, lost, claim, offering })
}

/// Accepted, and the same again changes nothing.
fn once(books: &mut Books, event: &Event) {
    books.ok(event.clone());
    let after = format!("{:?}", books.world);
    books.ok(event.clone());
    assert_eq!(format!("{:?}", books.world), after, "{event:?} twice is once");
}

fn state(books: &Books, claim: ClaimId) -> ClaimState {
    books.world.claims()[&claim].state
}

/// A warm node of the first zone that is up.
fn warm() -> Books {
    let mut books = with(two_zones());
    books.ok(stock(&[(C0, ZONE_A)]));
    books.ok(Event::NodeSeen(books.claim_node(C0, 8)));
    books
}

/// The same, stopped.
fn stopped() -> Books {
    let mut books = warm();
    books.ok(park(C0)).ok(Event::NodeGone("c0".into())).ok(Event::ClaimStopped(C0));
    books
}

/// A gang of two with an order of two claims.
fn ordered() -> (Books, OrderId) {
    let mut books = with(two_zones());
    books.gang(build::gang("train", 2, 8));
    let mut order = books.order("train", &[], &[0xff, 0xff]);
    order.claims.push((C1, ZONE_A));
    order.reservations[1].place = Place::Claim(C1);
    let (order, _) = books.place(order);
    (books, order)
}

#[test]
fn stock_counts_in_its_pool_and_belongs_to_nobody() {
    let mut books = with(two_zones());
    once(&mut books, &stock(&[(C0, ZONE_A), (C1, ZONE_B)]));
    assert_snapshot!(books.show(), @"
    pool p: 2 nodes, 16 gpus, 22.00 hourly: a*1 b*1
    claim c0 p-0: Requested
    claim c1 p-1: Requested
    ");
    assert!(books.world.claims().values().all(Claim::is_for_anybody));
}

#[test]
fn stock_over_any_limit_is_refused_as_a_whole() {
    let mut spec = two_zones();
    spec.limits.nodes = Some(1);
    let mut books = with(spec);
    assert_eq!(books.tell(stock(&[(C0, ZONE_A), (C1, ZONE_B)])), Err(Stale::Pool.into()));
    assert!(books.world.claims().is_empty());
    books.ok(stock(&[(C0, ZONE_A)]));
    assert_eq!(books.tell(stock(&[(C1, ZONE_B)])), Err(Stale::Pool.into()), "none is left");
}

#[test]
fn stock_from_what_nobody_lists_is_refused() {
    let mut books = with(two_zones());
    for offering in [OfferingRef { slot: 2, ..ZONE_A }, OfferingRef { pool: PoolIdx(1), slot: 0 }] {
        assert_eq!(books.tell(stock(&[(C0, offering)])), Err(Stale::Pool.into()), "{offering:?}");
    }
}

#[test]
fn a_number_that_was_given_before_is_not_stock() {
    let mut books = with(two_zones());
    books.ok(stock(&[(C0, ZONE_A)])).ok(release(C0)).ok(Event::ClaimGone(C0));
    assert_eq!(books.tell(stock(&[(C0, ZONE_A)])), Err(Stale::Order.into()));
    books.ok(stock(&[(C1, ZONE_A)]));
    assert_eq!(books.tell(stock(&[(C1, ZONE_B)])), Err(Stale::Order.into()), "another kind");
}

#[test]
fn stock_seen_again_does_not_take_a_node_from_its_order() {
    let mut books = with(two_zones());
    books.ok(stock(&[(C0, ZONE_A)])).gang(build::gang("train", 1, 8));
    let mut order = books.order("train", &[], &[0xff]);
    (order.claims[0].0, order.reservations[0].place) = (C0, Place::Claim(C0));
    let (order, _) = books.place(order);
    books.ok(stock(&[(C0, ZONE_A)]));
    assert_eq!(books.world.claims()[&C0].order, Some(order));
    assert_eq!(&*books.world.claims()[&C0].name, "p-0", "it keeps its name");
    books.ok(Event::NodeSeen(books.claim_node(C0, 8)));
    assert_eq!(books.admit("train", &[("c0", 0xff)]), Ok(()));
}

#[test]
fn a_node_under_way_is_taken_by_one_order_only() {
    let mut books = with(two_zones());
    books.ok(stock(&[(C0, ZONE_A)]));
    books.gang(build::gang("one", 1, 8)).gang(build::gang("two", 1, 8));
    for (gang, told) in [("one", Ok(())), ("two", Err(Stale::Order.into()))] {
        let mut order = books.order(gang, &[], &[0xff]);
        (order.claims[0].0, order.reservations[0].place) = (C0, Place::Claim(C0));
        assert_eq!(books.tell(Event::Decided(Action::Order(order))), told, "{gang}");
    }
}

#[test]
fn only_what_was_put_off_is_asked_for_again_and_each_time_once() {
    let mut books = with(two_zones());
    books.ok(stock(&[(C0, ZONE_A)]));
    assert_eq!(books.tell(retry(C0, 1)), Err(Stale::Order.into()), "it is under way");
    assert_eq!(books.tell(retry(C1, 1)), Err(Refusal::UnknownClaim(C1)));
    books.ok(Event::ClaimFailed(C0, ClaimFailure::Throttled));
    assert_eq!(books.tell(retry(C0, 2)), Err(Stale::Order.into()), "the first comes first");
    once(&mut books, &retry(C0, 1));
    assert_eq!(state(&books, C0), ClaimState::Requested);
    books.ok(Event::ClaimFailed(C0, ClaimFailure::Throttled)).ok(retry(C0, 2));
    books.ok(Event::ClaimFailed(C0, ClaimFailure::Throttled));
    assert_eq!(books.tell(retry(C0, 1)), Err(Stale::Order.into()), "long done");
    books.ok(release(C0));
    assert_eq!(books.tell(retry(C0, 3)), Err(Stale::Order.into()), "it is on its way out");
}

#[test]
fn what_failed_for_good_is_not_asked_for_again() {
    for failure in [
        ClaimFailure::StockOut,
        ClaimFailure::BootFailed,
        ClaimFailure::GpusMissing,
        ClaimFailure::Vanished,
    ] {
        let mut books = with(two_zones());
        books.ok(stock(&[(C0, ZONE_A)])).ok(Event::ClaimFailed(C0, failure));
        assert_eq!(books.tell(retry(C0, 1)), Err(Stale::Order.into()), "{failure:?}");
    }
}

#[test]
fn asking_again_starts_the_time_of_the_stage_anew() {
    let mut books = with(two_zones());
    books.ok(stock(&[(C0, ZONE_A)])).later(8);
    books.ok(Event::ClaimFailed(C0, ClaimFailure::Throttled)).later(1);
    assert_eq!(books.world.claim_due(C0), None, "it waits for nothing");
    books.ok(retry(C0, 1));
    let now = books.world.now();
    assert_eq!(books.world.claim_due(C0), Some((ClaimStage::Launch, now + Span::mins(10))));
}

#[test]
fn a_failure_told_twice_is_one_failure() {
    let mut books = with(two_zones());
    books.ok(stock(&[(C0, ZONE_A)]));
    once(&mut books, &Event::ClaimFailed(C0, ClaimFailure::StockOut));
    books.later(5).ok(Event::ClaimFailed(C0, ClaimFailure::StockOut));
    assert_eq!(books.world.offering(ZONE_A).health.streak, 1);
}

#[test]
fn a_top_up_takes_the_place_of_the_lost_claim_and_all_it_was_promised() {
    let (mut books, order) = ordered();
    books.ok(Event::NodeSeen(books.claim_node(C0, 8)));
    books.ok(Event::ClaimFailed(C1, ClaimFailure::BootFailed));
    once(&mut books, &top_up(order, C1, C2, ZONE_B));
    books.ok(release(C1));
    assert_snapshot!(books.show(), @"
    node c0: 0 of 8 gpus, 99 cores free, 1 seats
    queue default: 16 gpus
    pool p: 3 nodes, 24 gpus, 32.00 hourly: a*2 b*1
    claim c0 train-0-0: Ready
    claim c1 train-0-1: Failed(BootFailed), releasing
    claim c2 train-0-1-1: Requested
    gang train since 0s: Assembling(o0), 0 restarts, 0 failed
    ");
    assert_eq!(books.world.orders()[&order].top_ups, 1);
    books.ok(Event::NodeSeen(books.claim_node(C2, 8)));
    assert_eq!(books.admit("train", &[("c0", 0xff), ("c2", 0xff)]), Ok(()));
}

#[test]
fn a_top_up_may_use_what_is_under_way_for_nobody_and_nothing_else() {
    let (mut books, order) = ordered();
    books.ok(stock(&[(C2, ZONE_B)])).ok(Event::ClaimFailed(C1, ClaimFailure::StockOut));
    assert_eq!(books.tell(top_up(order, C1, C0, ZONE_A)), Ok(()), "it has that one already");
    assert_eq!(books.tell(top_up(order, C1, C2, ZONE_A)), Err(Stale::Order.into()), "not so");
    books.ok(top_up(order, C1, C2, ZONE_B));
    assert_eq!(books.world.claims()[&C2].order, Some(order));
    assert_eq!(books.world.claims()[&C1].order, None);
    assert_eq!(books.world.offering(ZONE_A).health.streak, 1, "a stock-out is remembered");
}

#[test]
fn a_stale_top_up_is_refused() {
    let (mut books, order) = ordered();
    let gone = OrderId(order.0 + 1);
    assert_eq!(books.tell(top_up(gone, C1, C2, ZONE_B)), Err(Stale::Order.into()), "no such order");
    assert_eq!(
        books.tell(top_up(order, C2, C2, ZONE_B)),
        Err(Stale::Order.into()),
        "not its claim"
    );
    books.ok(Event::NodeSeen(books.claim_node(C1, 8)));
    assert_eq!(books.tell(top_up(order, C1, C2, ZONE_B)), Err(Stale::Seat.into()), "it has come");
    let mut full = two_zones();
    full.limits.nodes = Some(2);
    books.ok(Event::PoolSet(full));
    books.ok(Event::ClaimFailed(C0, ClaimFailure::BootFailed));
    assert_eq!(books.tell(top_up(order, C0, C2, ZONE_B)), Err(Stale::Pool.into()), "no room");
}

#[test]
fn an_unused_node_is_stopped_and_keeps_its_place_in_its_pool() {
    let mut books = warm();
    once(&mut books, &park(C0));
    assert_snapshot!(books.show(), @"
    node c0: 8 of 8 gpus, 100 cores free, 0 seats releasing
    pool p: 1 nodes, 8 gpus, 10.00 hourly: a*1 b*0
    claim c0 p-0: Stopping
    ");
    books.gang(build::gang("train", 1, 8));
    assert_eq!(books.admit("train", &[("c0", 0xff)]), Err(Stale::Seat.into()), "it takes nobody");
    books.ok(Event::NodeGone("c0".into()));
    once(&mut books, &Event::ClaimStopped(C0));
    assert_snapshot!(books.show(), @"
    pool p: 1 nodes, 8 gpus, 10.00 hourly: a*1 b*0
    claim c0 p-0: Stopped
    gang train since 0s: Waiting, 0 restarts, 0 failed
    ");
}

#[test]
fn a_stopped_machine_stays_stopped_in_whatever_order_it_is_told() {
    let mut books = warm();
    books.ok(park(C0)).ok(Event::ClaimStopped(C0));
    let _ = books.tell(Event::NodeGone("c0".into()));
    assert_eq!(state(&books, C0), ClaimState::Stopped);
    assert_eq!(books.world.node_named("c0"), None);
}

#[test]
fn a_stopped_machine_takes_its_node_with_it_although_nobody_says_so() {
    let mut books = warm();
    books.ok(park(C0)).ok(Event::ClaimStopped(C0)).ok(stock(&[(C0, ZONE_A)]));
    books.ok(Event::NodeSeen(books.claim_node(C0, 8))).gang(build::gang("train", 1, 8));
    assert_eq!(books.admit("train", &[("c0", 0xff)]), Ok(()), "woken, it is as good as new");
}

#[test]
fn a_machine_that_joins_again_under_another_name_is_still_there_when_the_first_name_goes() {
    let mut books = warm();
    let mut again = books.claim_node(C0, 8);
    again.name = "again".into();
    books.ok(Event::NodeSeen(again)).ok(Event::NodeGone("c0".into()));
    assert!(matches!(state(&books, C0), ClaimState::Ready(_)), "{:?}", state(&books, C0));
    books.ok(Event::NodeGone("again".into()));
    assert_eq!(state(&books, C0), ClaimState::Failed(ClaimFailure::Vanished));
}

#[test]
fn what_is_used_promised_on_its_way_out_or_cannot_be_stopped_is_not_stopped() {
    let mut books = warm();
    books.gang(build::gang("train", 1, 8));
    assert_eq!(books.admit("train", &[("c0", 0xff)]), Ok(()));
    assert_eq!(books.tell(park(C0)), Err(Stale::InUse.into()), "used");
    let mut books = warm();
    books.ok(release(C0));
    assert_eq!(books.tell(park(C0)), Err(Stale::InUse.into()), "on its way out");
    let (mut books, _) = ordered();
    books.ok(Event::NodeSeen(books.claim_node(C0, 8)));
    assert_eq!(books.tell(park(C0)), Err(Stale::InUse.into()), "promised");
    let mut books = with(two_zones());
    books.ok(stock(&[(C0, ZONE_B)]));
    assert_eq!(books.tell(park(C0)), Err(Stale::InUse.into()), "not there yet");
    books.ok(Event::NodeSeen(books.claim_node(C0, 8)));
    assert_eq!(books.tell(park(C0)), Err(Stale::InUse.into()), "cannot be stopped");
    assert_eq!(books.tell(park(C1)), Err(Refusal::UnknownClaim(C1)));
}

#[test]
fn a_stopped_node_is_woken_once_and_is_as_good_as_new() {
    let mut books = stopped();
    once(&mut books, &stock(&[(C0, ZONE_A)]));
    assert_eq!(state(&books, C0), ClaimState::Requested);
    books.ok(Event::ClaimLaunched(C0));
    books.ok(Event::NodeSeen(books.claim_node(C0, 8)));
    assert_snapshot!(books.show(), @"
    node c0: 8 of 8 gpus, 100 cores free, 0 seats
    pool p: 1 nodes, 8 gpus, 10.00 hourly: a*1 b*0
    claim c0 p-0: Ready
    ");
    books.gang(build::gang("train", 1, 8));
    assert_eq!(books.admit("train", &[("c0", 0xff)]), Ok(()));
}

#[test]
fn an_order_wakes_the_stopped_node_it_is_promised() {
    let mut books = stopped();
    books.gang(build::gang("train", 1, 8));
    let mut order = books.order("train", &[], &[0xff]);
    (order.claims[0].0, order.reservations[0].place) = (C0, Place::Claim(C0));
    books.place(order);
    assert_eq!(state(&books, C0), ClaimState::Requested);
    books.ok(Event::NodeSeen(books.claim_node(C0, 8)));
    assert_eq!(books.admit("train", &[("c0", 0xff)]), Ok(()));
}

#[test]
fn a_stopped_node_is_given_back_like_any_other() {
    let mut books = stopped();
    once(&mut books, &release(C0));
    books.ok(Event::ClaimGone(C0));
    assert_snapshot!(books.show(), @"pool p: 0 nodes, 0 gpus, 0.00 hourly: a*0 b*0");
}

#[test]
fn a_retired_node_keeps_those_on_it_and_takes_nobody_new() {
    let mut books = warm();
    books.gang(build::gang("one", 1, 4)).gang(build::gang("two", 1, 4));
    assert_eq!(books.admit("one", &[("c0", 0x0f)]), Ok(()));
    once(&mut books, &retire(C0));
    assert_eq!(books.admit("two", &[("c0", 0xf0)]), Err(Stale::Seat.into()));
    assert_eq!(books.tell(release(C0)), Err(Stale::InUse.into()), "one is still there");
    books.ok(Event::NodeSeen(books.claim_node(C0, 8)));
    assert_eq!(books.admit("two", &[("c0", 0xf0)]), Err(Stale::Seat.into()), "seen again");
    let one = books.id("one");
    books.ok(Event::GangEnded(one)).ok(release(C0));
}

#[test]
fn what_an_order_waits_for_is_not_retired_and_what_retires_is_not_promised() {
    let (mut books, _) = ordered();
    assert_eq!(books.tell(retire(C0)), Err(Stale::InUse.into()));
    assert_eq!(books.tell(retire(C2)), Err(Refusal::UnknownClaim(C2)));
    books.ok(stock(&[(C2, ZONE_A)])).ok(retire(C2)).gang(build::gang("next", 1, 8));
    let mut order = books.order("next", &[], &[0xff]);
    (order.claims[0].0, order.reservations[0].place) = (C2, Place::Claim(C2));
    assert_eq!(books.tell(Event::Decided(Action::Order(order))), Err(Stale::Order.into()));
    books.ok(Event::NodeSeen(books.claim_node(C2, 8)));
    assert_eq!(books.admit("next", &[("c2", 0xff)]), Err(Stale::Seat.into()), "nor used");
}

#[test]
fn what_is_given_back_because_it_took_too_long_speaks_against_its_offering() {
    let streak = |minutes: u64| {
        let mut books = with(two_zones());
        books.ok(stock(&[(C0, ZONE_A)])).later(minutes);
        once(&mut books, &release(C0));
        books.world.offering(ZONE_A).health.streak
    };
    assert_eq!([streak(9), streak(10)], [0, 1]);
}

#[test]
fn what_is_given_back_after_being_put_off_again_and_again_speaks_against_its_offering() {
    for (again, streak) in [(false, 0), (true, 1)] {
        let mut books = with(two_zones());
        books.ok(stock(&[(C0, ZONE_A)])).ok(Event::ClaimFailed(C0, ClaimFailure::Throttled));
        if again {
            books.ok(retry(C0, 1)).ok(Event::ClaimFailed(C0, ClaimFailure::Throttled));
        }
        books.ok(release(C0));
        assert_eq!(books.world.offering(ZONE_A).health.streak, streak, "again: {again}");
    }
}

#[test]
fn a_claim_is_ready_when_its_node_shows_every_extended_resource() {
    let mut spec = two_zones();
    spec.offerings[0].allocatable.insert("rdma/hca".into(), 4);
    let mut books = with(spec);
    books.ok(stock(&[(C0, ZONE_A)]));
    assert_eq!(books.world.lacks(C0), None, "nobody knows before there is a node");
    // What it shows of GPUs and adapters, what others have of these, and what is lacking.
    let cases = [
        (0, None, 0, Some("GPUs")),
        (8, None, 0, Some("rdma/hca")),
        (8, Some(3), 0, Some("rdma/hca")),
        (8, Some(3), 1, None),
        (8, Some(4), 0, None),
        (7, Some(4), 0, Some("GPUs")),
        (8, Some(0), 4, None),
    ];
    for (gpus, adapters, of_others, lacking) in cases {
        let mut node = books.claim_node(C0, gpus);
        node.allocatable.remove("rdma/hca");
        node.allocatable.extend(adapters.map(|count| ("rdma/hca".into(), count)));
        node.allocatable.insert(resource::of_others("rdma/hca"), of_others);
        books.ok(Event::NodeSeen(node));
        let case = format!("{gpus} GPUs, {adapters:?} and {of_others} of others");
        let told = books.world.lacks(C0).map(|lack| match lack {
            Lack::Gpus => "GPUs",
            Lack::Resource(name) => name,
        });
        assert_eq!(told, lacking, "{case}");
        assert_eq!(books.world.claims()[&C0].is_ready(), lacking.is_none(), "{case}");
    }
}
