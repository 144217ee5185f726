//! Orders reserve, complete or are rolled back; claims become nodes or fail.

use insta::assert_snapshot;
use muster_core::Event;
use muster_core::event::Stale;
use muster_core::id::{ClaimId, OfferingRef, OrderId};
use muster_core::money::Money;
use muster_core::order::{ClaimFailure, Place, RollbackReason};
use muster_core::plan::Action;
use muster_core::pool::{PoolLimits, PoolSpec};
use muster_testkit::build;

use crate::fixture::Fixture;

/// One node here, one pool, and a gang of two that needs both.
fn ordered() -> (Fixture, OrderId, ClaimId) {
    let mut fixture = Fixture::new();
    fixture.node("a1", 8).ok(Event::PoolSet(build::pool("p", vec![build::offering("a", 10.0)])));
    fixture.later(1).gang(build::gang("ns/train", 2, 8));
    let (order, claim) = fixture.place(fixture.order("ns/train", &[("a1", 0xff)], &[0xff]));
    (fixture, order, claim)
}

#[test]
fn order_reserves_present_nodes_and_claims_the_rest() {
    let (fixture, ..) = ordered();
    assert_snapshot!(fixture.show(), @"
    node a1: 0 of 8 gpus, 99 cores free, 1 seats
    queue default: 16 gpus
    pool p: 1 nodes, 8 gpus, 10.00 hourly: a*1
    claim c0 ns-train-0-0: Requested
    gang ns/train since 1m: Assembling(o0), 0 restarts, 0 failed
    ");
}

#[test]
fn claim_advances_by_stage_and_holds_its_seats_when_ready() {
    let (mut fixture, _, claim) = ordered();
    fixture.ok(Event::ClaimLaunched(claim));
    fixture.ok(Event::NodeSeen(fixture.claim_node(claim, 7)));
    assert_snapshot!(fixture.show(), @"
    node a1: 0 of 8 gpus, 99 cores free, 1 seats
    node c0: 7 of 7 gpus, 100 cores free, 0 seats unusable
    queue default: 16 gpus
    pool p: 1 nodes, 8 gpus, 10.00 hourly: a*1
    claim c0 ns-train-0-0: Registered
    gang ns/train since 1m: Assembling(o0), 0 restarts, 0 failed
    ");
    fixture.ok(Event::NodeSeen(fixture.claim_node(claim, 8)));
    assert_snapshot!(fixture.show(), @"
    node a1: 0 of 8 gpus, 99 cores free, 1 seats
    node c0: 0 of 8 gpus, 99 cores free, 1 seats
    queue default: 16 gpus
    pool p: 1 nodes, 8 gpus, 10.00 hourly: a*1
    claim c0 ns-train-0-0: Ready
    gang ns/train since 1m: Assembling(o0), 0 restarts, 0 failed
    ");
}

#[test]
fn complete_order_becomes_the_admission_it_reserved() {
    let (mut fixture, order, claim) = ordered();
    let seats = [("a1", 0xff), ("c0", 0xff)];
    assert_eq!(fixture.admit("ns/train", &seats), Err(Stale::Order.into()), "not complete");
    fixture.ok(Event::NodeSeen(fixture.claim_node(claim, 8)));
    let other = [("a1", 0xff), ("a1", 0xff)];
    assert_eq!(fixture.admit("ns/train", &other), Err(Stale::Order.into()), "not what it holds");
    assert_eq!(fixture.admit("ns/train", &seats), Ok(()));
    assert!(!fixture.world.orders().contains_key(&order));
    assert_snapshot!(fixture.show(), @"
    node a1: 0 of 8 gpus, 99 cores free, 1 seats
    node c0: 0 of 8 gpus, 99 cores free, 1 seats
    queue default: 16 gpus
    pool p: 1 nodes, 8 gpus, 10.00 hourly: a*1
    claim c0 ns-train-0-0: Ready
    gang ns/train since 1m: Admitted, 0 restarts, 0 failed
    ");
}

#[test]
fn rollback_frees_everything_and_records_the_failed_offering() {
    let (mut fixture, order, claim) = ordered();
    fixture.ok(Event::ClaimFailed(claim, ClaimFailure::StockOut)).later(4);
    let reason = RollbackReason::ClaimFailed(claim, ClaimFailure::StockOut);
    let roll_back = Event::Decided(Action::RollBack { order, reason });
    fixture.ok(roll_back.clone());
    assert_eq!(fixture.tell(roll_back), Err(Stale::Order.into()), "it is over");
    assert_snapshot!(fixture.show(), @"
    node a1: 8 of 8 gpus, 100 cores free, 0 seats
    pool p: 1 nodes, 8 gpus, 10.00 hourly: a*1
    claim c0 ns-train-0-0: Failed(StockOut)
    gang ns/train since 1m: Waiting, 0 restarts, 0 failed
    ");
    let health = fixture.world.pools().values().next().expect("a pool").offerings[0].health;
    assert_eq!((health.streak, health.last_failure.map(|at| at.0)), (1, Some(5 * 60_000)));
}

#[test]
fn order_timeout_counts_against_late_offerings_only() {
    for (ready, streak) in [(true, 0), (false, 1)] {
        let (mut fixture, order, claim) = ordered();
        if ready {
            fixture.ok(Event::NodeSeen(fixture.claim_node(claim, 8)));
        }
        let reason = RollbackReason::DeadlinePassed;
        fixture.ok(Event::Decided(Action::RollBack { order, reason }));
        let health = fixture.world.pools().values().next().expect("a pool").offerings[0].health;
        assert_eq!(health.streak, streak, "ready: {ready}");
    }
}

#[test]
fn cancelled_gang_counts_against_no_offering() {
    let (mut fixture, order, _) = ordered();
    let gang = fixture.id("ns/train");
    fixture.ok(Event::GangCancelled(gang));
    fixture.ok(Event::Decided(Action::RollBack { order, reason: RollbackReason::GangGone }));
    assert!(fixture.world.gang(gang).is_none(), "it is gone with its order");
    let health = fixture.world.pools().values().next().expect("a pool").offerings[0].health;
    assert_eq!(health.streak, 0);
    assert_snapshot!(fixture.show(), @"
    node a1: 8 of 8 gpus, 100 cores free, 0 seats
    pool p: 1 nodes, 8 gpus, 10.00 hourly: a*1
    claim c0 ns-train-0-0: Requested
    ");
}

#[test]
fn claim_counts_in_its_pool_until_it_is_gone() {
    let (mut fixture, order, claim) = ordered();
    let release = Event::Decided(Action::Release { claim });
    assert_eq!(fixture.tell(release.clone()), Err(Stale::InUse.into()), "its order needs it");
    fixture.ok(Event::ClaimGone(claim));
    assert_snapshot!(fixture.show(), @"
    node a1: 0 of 8 gpus, 99 cores free, 1 seats
    queue default: 16 gpus
    pool p: 1 nodes, 8 gpus, 10.00 hourly: a*1
    claim c0 ns-train-0-0: Failed(Vanished)
    gang ns/train since 1m: Assembling(o0), 0 restarts, 0 failed
    ");
    let reason = RollbackReason::ClaimFailed(claim, ClaimFailure::Vanished);
    fixture.ok(Event::Decided(Action::RollBack { order, reason })).ok(release.clone()).ok(release);
    fixture.ok(Event::ClaimGone(claim));
    assert_snapshot!(fixture.show(), @"
    node a1: 8 of 8 gpus, 100 cores free, 0 seats
    pool p: 0 nodes, 0 gpus, 0.00 hourly: a*0
    gang ns/train since 1m: Waiting, 0 restarts, 1 failed
    ");
}

#[test]
fn released_node_takes_no_members_and_node_in_use_is_not_released() {
    let (mut fixture, _, claim) = ordered();
    fixture.ok(Event::NodeSeen(fixture.claim_node(claim, 8)));
    assert_eq!(fixture.admit("ns/train", &[("a1", 0xff), ("c0", 0xff)]), Ok(()));
    let release = Event::Decided(Action::Release { claim });
    assert_eq!(fixture.tell(release.clone()), Err(Stale::InUse.into()));
    let train = fixture.id("ns/train");
    fixture.ok(Event::GangEnded(train)).ok(release).gang(build::gang("next", 1, 8));
    assert_eq!(fixture.admit("next", &[("c0", 0xff)]), Err(Stale::Seat.into()));
    fixture.ok(Event::NodeSeen(fixture.claim_node(claim, 8)));
    assert_eq!(fixture.admit("next", &[("c0", 0xff)]), Err(Stale::Seat.into()), "seen again");
    assert_snapshot!(fixture.show(), @"
    node a1: 8 of 8 gpus, 100 cores free, 0 seats
    node c0: 8 of 8 gpus, 100 cores free, 0 seats releasing
    pool p: 1 nodes, 8 gpus, 10.00 hourly: a*1
    claim c0 ns-train-0-0: Ready, releasing
    gang next since 1m: Waiting, 0 restarts, 0 failed
    ");
}

#[test]
fn node_observed_after_its_claim_was_released_takes_no_members() {
    let (mut fixture, order, claim) = ordered();
    let reason = RollbackReason::DeadlinePassed;
    fixture.ok(Event::Decided(Action::RollBack { order, reason }));
    fixture.ok(Event::Decided(Action::Release { claim }));
    fixture.ok(Event::NodeSeen(fixture.claim_node(claim, 8)));
    assert_snapshot!(fixture.show(), @"
    node a1: 8 of 8 gpus, 100 cores free, 0 seats
    node c0: 8 of 8 gpus, 100 cores free, 0 seats releasing
    pool p: 1 nodes, 8 gpus, 10.00 hourly: a*1
    claim c0 ns-train-0-0: Ready, releasing
    gang ns/train since 1m: Waiting, 0 restarts, 1 failed
    ");
}

#[test]
fn lost_node_fails_its_claim_and_rollback_frees_its_seats() {
    let (mut fixture, order, claim) = ordered();
    fixture.ok(Event::NodeSeen(fixture.claim_node(claim, 8))).ok(Event::NodeGone("c0".into()));
    assert_snapshot!(fixture.show(), @"
    node a1: 0 of 8 gpus, 99 cores free, 1 seats
    queue default: 16 gpus
    pool p: 1 nodes, 8 gpus, 10.00 hourly: a*1
    claim c0 ns-train-0-0: Failed(Vanished)
    gang ns/train since 1m: Assembling(o0), 0 restarts, 0 failed
    ");
    let reason = RollbackReason::ClaimFailed(claim, ClaimFailure::Vanished);
    fixture.ok(Event::Decided(Action::RollBack { order, reason }));
    assert_snapshot!(fixture.show(), @"
    node a1: 8 of 8 gpus, 100 cores free, 0 seats
    pool p: 1 nodes, 8 gpus, 10.00 hourly: a*1
    claim c0 ns-train-0-0: Failed(Vanished)
    gang ns/train since 1m: Waiting, 0 restarts, 1 failed
    ");
    fixture.node("b1", 8);
    assert_eq!(fixture.world.node_slots(), 2, "the lost node's slot is used again");
}

#[test]
fn order_and_claim_numbers_are_never_reused() {
    let (mut fixture, order, claim) = ordered();
    let reason = RollbackReason::DeadlinePassed;
    fixture.ok(Event::Decided(Action::RollBack { order, reason }));
    fixture.ok(Event::Decided(Action::Release { claim })).ok(Event::ClaimGone(claim));
    let mut again = fixture.order("ns/train", &[("a1", 0xff)], &[0xff]);
    assert!(again.id > order && again.claims[0].0 > claim);
    again.id = order;
    assert_eq!(fixture.tell(Event::Decided(Action::Order(again.clone()))), Err(Stale::Gang.into()));
    again.id = fixture.world.next_order();
    again.claims[0].0 = claim;
    assert_eq!(fixture.tell(Event::Decided(Action::Order(again))), Err(Stale::Order.into()));
}

#[test]
fn pool_limits_apply_to_all_its_offerings_together() {
    let mut spec = build::pool("p", vec![build::offering("a", 10.0), build::offering("b", 12.0)]);
    let limits = |nodes, gpus, hourly: Option<f64>| PoolLimits {
        nodes,
        gpus,
        hourly_spend: hourly.and_then(Money::from_units),
    };
    let one_of_each = |spec: &PoolSpec| {
        let mut fixture = Fixture::new();
        fixture.ok(Event::PoolSet(spec.clone())).gang(build::gang("train", 2, 8));
        let mut order = fixture.order("train", &[], &[0xff, 0xff]);
        let (first, offering) = order.claims[0];
        let second = ClaimId(first.0 + 1);
        order.claims.push((second, OfferingRef { slot: 1, ..offering }));
        order.reservations[1].place = Place::Claim(second);
        fixture.tell(Event::Decided(Action::Order(order)))
    };
    for (tight, enough) in [
        (limits(Some(1), None, None), limits(Some(2), None, None)),
        (limits(None, Some(15), None), limits(None, Some(16), None)),
        (limits(None, None, Some(21.99)), limits(None, None, Some(22.0))),
    ] {
        spec.limits = tight;
        assert_eq!(one_of_each(&spec), Err(Stale::Pool.into()), "{:?}", spec.limits);
        spec.limits = enough;
        assert_eq!(one_of_each(&spec), Ok(()), "{:?}", spec.limits);
    }
}
