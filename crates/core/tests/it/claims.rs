//! Claims without an order: requested, retried, replaced, stopped, started, retired. Each decision is accepted once,
//! has no effect when repeated, and is refused without a trace when it is stale.

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

use crate::fixture::Fixture;

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

fn with(spec: PoolSpec) -> Fixture {
    let mut fixture = Fixture::new();
    fixture.ok(Event::PoolSet(spec));
    fixture
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
fn accepted_once(fixture: &mut Fixture, event: &Event) {
    fixture.ok(event.clone());
    let after = format!("{:?}", fixture.world);
    fixture.ok(event.clone());
    assert_eq!(format!("{:?}", fixture.world), after, "{event:?} twice is once");
}

fn state(fixture: &Fixture, claim: ClaimId) -> ClaimState {
    fixture.world.claims()[&claim].state
}

/// A warm node of the first zone that is up.
fn warm() -> Fixture {
    let mut fixture = with(two_zones());
    fixture.ok(stock(&[(C0, ZONE_A)]));
    fixture.ok(Event::NodeSeen(fixture.claim_node(C0, 8)));
    fixture
}

/// The same, stopped.
fn stopped() -> Fixture {
    let mut fixture = warm();
    fixture.ok(park(C0)).ok(Event::NodeGone("c0".into())).ok(Event::ClaimStopped(C0));
    fixture
}

/// A gang of two with an order of two claims.
fn ordered() -> (Fixture, OrderId) {
    let mut fixture = with(two_zones());
    fixture.gang(build::gang("train", 2, 8));
    let mut order = fixture.order("train", &[], &[0xff, 0xff]);
    order.claims.push((C1, ZONE_A));
    order.reservations[1].place = Place::Claim(C1);
    let (order, _) = fixture.place(order);
    (fixture, order)
}

#[test]
fn stock_counts_in_its_pool_and_has_no_order() {
    let mut fixture = with(two_zones());
    accepted_once(&mut fixture, &stock(&[(C0, ZONE_A), (C1, ZONE_B)]));
    assert_snapshot!(fixture.show(), @"
    pool p: 2 nodes, 16 gpus, 22.00 hourly: a*1 b*1
    claim c0 p-0: Requested
    claim c1 p-1: Requested
    ");
    assert!(fixture.world.claims().values().all(Claim::is_unassigned));
}

#[test]
fn stock_over_any_limit_is_refused_as_a_whole() {
    let mut spec = two_zones();
    spec.limits.nodes = Some(1);
    let mut fixture = with(spec);
    assert_eq!(fixture.tell(stock(&[(C0, ZONE_A), (C1, ZONE_B)])), Err(Stale::Pool.into()));
    assert!(fixture.world.claims().is_empty());
    fixture.ok(stock(&[(C0, ZONE_A)]));
    assert_eq!(fixture.tell(stock(&[(C1, ZONE_B)])), Err(Stale::Pool.into()), "none is left");
}

#[test]
fn stock_from_an_unlisted_offering_is_refused() {
    let mut fixture = with(two_zones());
    for offering in [OfferingRef { slot: 2, ..ZONE_A }, OfferingRef { pool: PoolIdx(1), slot: 0 }] {
        assert_eq!(fixture.tell(stock(&[(C0, offering)])), Err(Stale::Pool.into()), "{offering:?}");
    }
}

#[test]
fn stock_with_a_used_claim_number_is_refused() {
    let mut fixture = with(two_zones());
    fixture.ok(stock(&[(C0, ZONE_A)])).ok(release(C0)).ok(Event::ClaimGone(C0));
    assert_eq!(fixture.tell(stock(&[(C0, ZONE_A)])), Err(Stale::Order.into()));
    fixture.ok(stock(&[(C1, ZONE_A)]));
    assert_eq!(fixture.tell(stock(&[(C1, ZONE_B)])), Err(Stale::Order.into()), "another kind");
}

#[test]
fn repeated_stock_does_not_take_a_claim_from_its_order() {
    let mut fixture = with(two_zones());
    fixture.ok(stock(&[(C0, ZONE_A)])).gang(build::gang("train", 1, 8));
    let mut order = fixture.order("train", &[], &[0xff]);
    (order.claims[0].0, order.reservations[0].place) = (C0, Place::Claim(C0));
    let (order, _) = fixture.place(order);
    fixture.ok(stock(&[(C0, ZONE_A)]));
    assert_eq!(fixture.world.claims()[&C0].order, Some(order));
    assert_eq!(&*fixture.world.claims()[&C0].name, "p-0", "it keeps its name");
    fixture.ok(Event::NodeSeen(fixture.claim_node(C0, 8)));
    assert_eq!(fixture.admit("train", &[("c0", 0xff)]), Ok(()));
}

#[test]
fn coming_node_is_assigned_to_one_order_only() {
    let mut fixture = with(two_zones());
    fixture.ok(stock(&[(C0, ZONE_A)]));
    fixture.gang(build::gang("one", 1, 8)).gang(build::gang("two", 1, 8));
    for (gang, told) in [("one", Ok(())), ("two", Err(Stale::Order.into()))] {
        let mut order = fixture.order(gang, &[], &[0xff]);
        (order.claims[0].0, order.reservations[0].place) = (C0, Place::Claim(C0));
        assert_eq!(fixture.tell(Event::Decided(Action::Order(order))), told, "{gang}");
    }
}

#[test]
fn only_a_deferred_claim_is_retried_once_per_attempt() {
    let mut fixture = with(two_zones());
    fixture.ok(stock(&[(C0, ZONE_A)]));
    assert_eq!(fixture.tell(retry(C0, 1)), Err(Stale::Order.into()), "it is under way");
    assert_eq!(fixture.tell(retry(C1, 1)), Err(Refusal::UnknownClaim(C1)));
    fixture.ok(Event::ClaimFailed(C0, ClaimFailure::Throttled));
    assert_eq!(fixture.tell(retry(C0, 2)), Err(Stale::Order.into()), "the first comes first");
    accepted_once(&mut fixture, &retry(C0, 1));
    assert_eq!(state(&fixture, C0), ClaimState::Requested);
    fixture.ok(Event::ClaimFailed(C0, ClaimFailure::Throttled)).ok(retry(C0, 2));
    fixture.ok(Event::ClaimFailed(C0, ClaimFailure::Throttled));
    assert_eq!(fixture.tell(retry(C0, 1)), Err(Stale::Order.into()), "long done");
    fixture.ok(release(C0));
    assert_eq!(fixture.tell(retry(C0, 3)), Err(Stale::Order.into()), "it is on its way out");
}

#[test]
fn permanently_failed_claim_is_not_retried() {
    for failure in [
        ClaimFailure::StockOut,
        ClaimFailure::BootFailed,
        ClaimFailure::GpusMissing,
        ClaimFailure::Vanished,
    ] {
        let mut fixture = with(two_zones());
        fixture.ok(stock(&[(C0, ZONE_A)])).ok(Event::ClaimFailed(C0, failure));
        assert_eq!(fixture.tell(retry(C0, 1)), Err(Stale::Order.into()), "{failure:?}");
    }
}

#[test]
fn retry_restarts_the_timeout_of_the_stage() {
    let mut fixture = with(two_zones());
    fixture.ok(stock(&[(C0, ZONE_A)])).later(8);
    fixture.ok(Event::ClaimFailed(C0, ClaimFailure::Throttled)).later(1);
    assert_eq!(fixture.world.claim_due(C0), None, "it waits for nothing");
    fixture.ok(retry(C0, 1));
    let now = fixture.world.now();
    assert_eq!(fixture.world.claim_due(C0), Some((ClaimStage::Launch, now + Span::mins(10))));
}

#[test]
fn repeated_failure_event_counts_once() {
    let mut fixture = with(two_zones());
    fixture.ok(stock(&[(C0, ZONE_A)]));
    accepted_once(&mut fixture, &Event::ClaimFailed(C0, ClaimFailure::StockOut));
    fixture.later(5).ok(Event::ClaimFailed(C0, ClaimFailure::StockOut));
    assert_eq!(fixture.world.offering(ZONE_A).health.streak, 1);
}

#[test]
fn replacement_claim_takes_over_the_lost_claims_reservations() {
    let (mut fixture, order) = ordered();
    fixture.ok(Event::NodeSeen(fixture.claim_node(C0, 8)));
    fixture.ok(Event::ClaimFailed(C1, ClaimFailure::BootFailed));
    accepted_once(&mut fixture, &top_up(order, C1, C2, ZONE_B));
    fixture.ok(release(C1));
    assert_snapshot!(fixture.show(), @"
    node c0: 0 of 8 gpus, 99 cores free, 1 seats
    queue default: 16 gpus
    pool p: 3 nodes, 24 gpus, 32.00 hourly: a*2 b*1
    claim c0 train-0-0: Ready
    claim c1 train-0-1: Failed(BootFailed), releasing
    claim c2 train-0-1-1: Requested
    gang train since 0s: Assembling(o0), 0 restarts, 0 failed
    ");
    assert_eq!(fixture.world.orders()[&order].top_ups, 1);
    fixture.ok(Event::NodeSeen(fixture.claim_node(C2, 8)));
    assert_eq!(fixture.admit("train", &[("c0", 0xff), ("c2", 0xff)]), Ok(()));
}

#[test]
fn replacement_claim_may_be_new_or_unassigned_only() {
    let (mut fixture, order) = ordered();
    fixture.ok(stock(&[(C2, ZONE_B)])).ok(Event::ClaimFailed(C1, ClaimFailure::StockOut));
    assert_eq!(fixture.tell(top_up(order, C1, C0, ZONE_A)), Ok(()), "it has that one already");
    assert_eq!(fixture.tell(top_up(order, C1, C2, ZONE_A)), Err(Stale::Order.into()), "not so");
    fixture.ok(top_up(order, C1, C2, ZONE_B));
    assert_eq!(fixture.world.claims()[&C2].order, Some(order));
    assert_eq!(fixture.world.claims()[&C1].order, None);
    assert_eq!(fixture.world.offering(ZONE_A).health.streak, 1, "a stock-out is remembered");
}

#[test]
fn stale_claim_replacement_is_refused() {
    let (mut fixture, order) = ordered();
    let gone = OrderId(order.0 + 1);
    assert_eq!(
        fixture.tell(top_up(gone, C1, C2, ZONE_B)),
        Err(Stale::Order.into()),
        "no such order"
    );
    assert_eq!(
        fixture.tell(top_up(order, C2, C2, ZONE_B)),
        Err(Stale::Order.into()),
        "not its claim"
    );
    fixture.ok(Event::NodeSeen(fixture.claim_node(C1, 8)));
    assert_eq!(fixture.tell(top_up(order, C1, C2, ZONE_B)), Err(Stale::Seat.into()), "it has come");
    let mut full = two_zones();
    full.limits.nodes = Some(2);
    fixture.ok(Event::PoolSet(full));
    fixture.ok(Event::ClaimFailed(C0, ClaimFailure::BootFailed));
    assert_eq!(fixture.tell(top_up(order, C0, C2, ZONE_B)), Err(Stale::Pool.into()), "no room");
}

#[test]
fn idle_node_is_stopped_and_still_counts_in_its_pool() {
    let mut fixture = warm();
    accepted_once(&mut fixture, &park(C0));
    assert_snapshot!(fixture.show(), @"
    node c0: 8 of 8 gpus, 100 cores free, 0 seats releasing
    pool p: 1 nodes, 8 gpus, 10.00 hourly: a*1 b*0
    claim c0 p-0: Stopping
    ");
    fixture.gang(build::gang("train", 1, 8));
    assert_eq!(
        fixture.admit("train", &[("c0", 0xff)]),
        Err(Stale::Seat.into()),
        "it takes no members"
    );
    fixture.ok(Event::NodeGone("c0".into()));
    accepted_once(&mut fixture, &Event::ClaimStopped(C0));
    assert_snapshot!(fixture.show(), @"
    pool p: 1 nodes, 8 gpus, 10.00 hourly: a*1 b*0
    claim c0 p-0: Stopped
    gang train since 0s: Waiting, 0 restarts, 0 failed
    ");
}

#[test]
fn stopped_machine_stays_stopped_in_any_order_of_events() {
    let mut fixture = warm();
    fixture.ok(park(C0)).ok(Event::ClaimStopped(C0));
    let _ = fixture.tell(Event::NodeGone("c0".into()));
    assert_eq!(state(&fixture, C0), ClaimState::Stopped);
    assert_eq!(fixture.world.node_named("c0"), None);
}

#[test]
fn stopped_machine_removes_its_node_without_an_event() {
    let mut fixture = warm();
    fixture.ok(park(C0)).ok(Event::ClaimStopped(C0)).ok(stock(&[(C0, ZONE_A)]));
    fixture.ok(Event::NodeSeen(fixture.claim_node(C0, 8))).gang(build::gang("train", 1, 8));
    assert_eq!(fixture.admit("train", &[("c0", 0xff)]), Ok(()), "woken, it is as good as new");
}

#[test]
fn machine_that_rejoined_under_a_new_name_survives_loss_of_the_old() {
    let mut fixture = warm();
    let mut again = fixture.claim_node(C0, 8);
    again.name = "again".into();
    fixture.ok(Event::NodeSeen(again)).ok(Event::NodeGone("c0".into()));
    assert!(matches!(state(&fixture, C0), ClaimState::Ready(_)), "{:?}", state(&fixture, C0));
    fixture.ok(Event::NodeGone("again".into()));
    assert_eq!(state(&fixture, C0), ClaimState::Failed(ClaimFailure::Vanished));
}

#[test]
fn used_reserved_releasing_or_unstoppable_nodes_are_not_stopped() {
    let mut fixture = warm();
    fixture.gang(build::gang("train", 1, 8));
    assert_eq!(fixture.admit("train", &[("c0", 0xff)]), Ok(()));
    assert_eq!(fixture.tell(park(C0)), Err(Stale::InUse.into()), "used");
    let mut fixture = warm();
    fixture.ok(release(C0));
    assert_eq!(fixture.tell(park(C0)), Err(Stale::InUse.into()), "on its way out");
    let (mut fixture, _) = ordered();
    fixture.ok(Event::NodeSeen(fixture.claim_node(C0, 8)));
    assert_eq!(fixture.tell(park(C0)), Err(Stale::InUse.into()), "promised");
    let mut fixture = with(two_zones());
    fixture.ok(stock(&[(C0, ZONE_B)]));
    assert_eq!(fixture.tell(park(C0)), Err(Stale::InUse.into()), "not there yet");
    fixture.ok(Event::NodeSeen(fixture.claim_node(C0, 8)));
    assert_eq!(fixture.tell(park(C0)), Err(Stale::InUse.into()), "cannot be stopped");
    assert_eq!(fixture.tell(park(C1)), Err(Refusal::UnknownClaim(C1)));
}

#[test]
fn stopped_node_is_started_once_and_takes_members_again() {
    let mut fixture = stopped();
    accepted_once(&mut fixture, &stock(&[(C0, ZONE_A)]));
    assert_eq!(state(&fixture, C0), ClaimState::Requested);
    fixture.ok(Event::ClaimLaunched(C0));
    fixture.ok(Event::NodeSeen(fixture.claim_node(C0, 8)));
    assert_snapshot!(fixture.show(), @"
    node c0: 8 of 8 gpus, 100 cores free, 0 seats
    pool p: 1 nodes, 8 gpus, 10.00 hourly: a*1 b*0
    claim c0 p-0: Ready
    ");
    fixture.gang(build::gang("train", 1, 8));
    assert_eq!(fixture.admit("train", &[("c0", 0xff)]), Ok(()));
}

#[test]
fn order_starts_the_stopped_node_it_reserves() {
    let mut fixture = stopped();
    fixture.gang(build::gang("train", 1, 8));
    let mut order = fixture.order("train", &[], &[0xff]);
    (order.claims[0].0, order.reservations[0].place) = (C0, Place::Claim(C0));
    fixture.place(order);
    assert_eq!(state(&fixture, C0), ClaimState::Requested);
    fixture.ok(Event::NodeSeen(fixture.claim_node(C0, 8)));
    assert_eq!(fixture.admit("train", &[("c0", 0xff)]), Ok(()));
}

#[test]
fn stopped_node_is_released_like_any_other() {
    let mut fixture = stopped();
    accepted_once(&mut fixture, &release(C0));
    fixture.ok(Event::ClaimGone(C0));
    assert_snapshot!(fixture.show(), @"pool p: 0 nodes, 0 gpus, 0.00 hourly: a*0 b*0");
}

#[test]
fn retired_node_keeps_its_members_and_takes_no_new_ones() {
    let mut fixture = warm();
    fixture.gang(build::gang("one", 1, 4)).gang(build::gang("two", 1, 4));
    assert_eq!(fixture.admit("one", &[("c0", 0x0f)]), Ok(()));
    accepted_once(&mut fixture, &retire(C0));
    assert_eq!(fixture.admit("two", &[("c0", 0xf0)]), Err(Stale::Seat.into()));
    assert_eq!(fixture.tell(release(C0)), Err(Stale::InUse.into()), "one is still there");
    fixture.ok(Event::NodeSeen(fixture.claim_node(C0, 8)));
    assert_eq!(fixture.admit("two", &[("c0", 0xf0)]), Err(Stale::Seat.into()), "seen again");
    let one = fixture.id("one");
    fixture.ok(Event::GangEnded(one)).ok(release(C0));
}

#[test]
fn reserved_claim_is_not_retired_and_retired_claim_is_not_reserved() {
    let (mut fixture, _) = ordered();
    assert_eq!(fixture.tell(retire(C0)), Err(Stale::InUse.into()));
    assert_eq!(fixture.tell(retire(C2)), Err(Refusal::UnknownClaim(C2)));
    fixture.ok(stock(&[(C2, ZONE_A)])).ok(retire(C2)).gang(build::gang("next", 1, 8));
    let mut order = fixture.order("next", &[], &[0xff]);
    (order.claims[0].0, order.reservations[0].place) = (C2, Place::Claim(C2));
    assert_eq!(fixture.tell(Event::Decided(Action::Order(order))), Err(Stale::Order.into()));
    fixture.ok(Event::NodeSeen(fixture.claim_node(C2, 8)));
    assert_eq!(fixture.admit("next", &[("c2", 0xff)]), Err(Stale::Seat.into()), "nor used");
}

#[test]
fn release_after_a_timeout_counts_against_the_offering() {
    let streak = |minutes: u64| {
        let mut fixture = with(two_zones());
        fixture.ok(stock(&[(C0, ZONE_A)])).later(minutes);
        accepted_once(&mut fixture, &release(C0));
        fixture.world.offering(ZONE_A).health.streak
    };
    assert_eq!([streak(9), streak(10)], [0, 1]);
}

#[test]
fn release_after_many_retries_counts_against_the_offering() {
    for (again, streak) in [(false, 0), (true, 1)] {
        let mut fixture = with(two_zones());
        fixture.ok(stock(&[(C0, ZONE_A)])).ok(Event::ClaimFailed(C0, ClaimFailure::Throttled));
        if again {
            fixture.ok(retry(C0, 1)).ok(Event::ClaimFailed(C0, ClaimFailure::Throttled));
        }
        fixture.ok(release(C0));
        assert_eq!(fixture.world.offering(ZONE_A).health.streak, streak, "again: {again}");
    }
}

#[test]
fn claim_is_ready_when_its_node_shows_every_extended_resource() {
    let mut spec = two_zones();
    spec.offerings[0].allocatable.insert("rdma/hca".into(), 4);
    let mut fixture = with(spec);
    fixture.ok(stock(&[(C0, ZONE_A)]));
    assert_eq!(fixture.world.lacks(C0), None, "unknown before there is a node");
    // GPUs and adapters that it shows, those that other pods hold, and what is lacking.
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
        let mut node = fixture.claim_node(C0, gpus);
        node.allocatable.remove("rdma/hca");
        node.allocatable.extend(adapters.map(|count| ("rdma/hca".into(), count)));
        node.allocatable.insert(resource::of_others("rdma/hca"), of_others);
        fixture.ok(Event::NodeSeen(node));
        let case = format!("{gpus} GPUs, {adapters:?} and {of_others} of others");
        let told = fixture.world.lacks(C0).map(|lack| match lack {
            Lack::Gpus => "GPUs",
            Lack::Resource(name) => name,
        });
        assert_eq!(told, lacking, "{case}");
        assert_eq!(fixture.world.claims()[&C0].is_ready(), lacking.is_none(), "{case}");
    }
}
