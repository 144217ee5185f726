//! Former miscounts of the World, one case each. Every step is audited.

use insta::assert_snapshot;
use muster_core::Event;
use muster_core::order::ClaimFailure;
use muster_core::plan::Action;
use muster_testkit::build;

use crate::fixture::Fixture;

/// One pool, and a gang with an order of one claim for its members.
fn ordered(members: &[u64], gpus: u16) -> Fixture {
    let mut fixture = Fixture::new();
    fixture.ok(Event::PoolSet(build::pool("p", vec![build::offering("a", 10.0)])));
    fixture.gang(build::gang("train", members.len() as u32, gpus));
    fixture.place(fixture.order("train", &[], members));
    fixture
}

#[test]
fn shrunken_node_recovers_as_its_members_leave() {
    let mut fixture = Fixture::new();
    fixture.node("a1", 8).gang(build::gang("one", 1, 4)).gang(build::gang("two", 1, 4));
    assert_eq!(fixture.admit("one", &[("a1", 0x0f)]), Ok(()));
    assert_eq!(fixture.admit("two", &[("a1", 0xf0)]), Ok(()));
    let mut small = build::node("a1", 6, &[]);
    small.allocatable = build::amounts(1, 1_000);
    fixture.ok(Event::NodeSeen(small));
    let (one, two) = (fixture.id("one"), fixture.id("two"));
    fixture.ok(Event::GangEnded(one));
    assert_snapshot!(fixture.show(), @"
    node a1: 4 of 6 gpus, 0 cores free, 1 seats
    queue default: 4 gpus
    gang two since 0s: Admitted, 0 restarts, 0 failed
    ");
    fixture.node("a1", 8).ok(Event::GangEnded(two));
    assert_snapshot!(fixture.show(), @"node a1: 8 of 8 gpus, 100 cores free, 0 seats");
}

#[test]
fn pool_changed_in_size_and_price_recounts_its_claims() {
    let mut fixture = ordered(&[0x0f], 4);
    let mut large = build::offering("a", 25.0);
    large.gpus = 16;
    fixture.ok(Event::PoolSet(build::pool("p", vec![large])));
    assert_snapshot!(fixture.show(), @"
    queue default: 4 gpus
    pool p: 1 nodes, 16 gpus, 25.00 hourly: a*1
    claim c0 train-0-0: Requested
    gang train since 0s: Assembling(o0), 0 restarts, 0 failed
    ");
}

#[test]
fn flapping_node_of_an_assembling_order_holds_its_seats_once() {
    for (members, gpus) in [(&[0x0f, 0xf0][..], 4), (&[0, 0, 0][..], 0)] {
        let mut fixture = ordered(members, gpus);
        let claim = *fixture.world.claims().keys().next().expect("one claim");
        for ready in [true, false, true, true] {
            let mut seen = fixture.claim_node(claim, 8);
            seen.ready = ready;
            fixture.ok(Event::NodeSeen(seen));
            let held = fixture.world.orders().values().next().expect("one order").held.len();
            assert_eq!(held, members.len(), "ready: {ready}");
        }
        let seats: Vec<(&str, u64)> = members.iter().map(|bits| ("c0", *bits)).collect();
        assert_eq!(fixture.admit("train", &seats), Ok(()));
    }
}

#[test]
fn node_whose_claim_becomes_known_late_is_counted_once() {
    let mut fixture = ordered(&[0xff], 8);
    fixture.node("c0", 8);
    let claim = *fixture.world.claims().keys().next().expect("one claim");
    fixture.ok(Event::NodeSeen(fixture.claim_node(claim, 8))).ok(Event::NodeGone("c0".into()));
    assert_snapshot!(fixture.show(), @"
    queue default: 8 gpus
    pool p: 1 nodes, 8 gpus, 10.00 hourly: a*1
    claim c0 train-0-0: Failed(Vanished)
    gang train since 0s: Assembling(o0), 0 restarts, 0 failed
    ");
}

#[test]
fn node_of_a_failed_claim_is_not_used_when_observed_again() {
    let mut fixture = ordered(&[0xff], 8);
    let claim = *fixture.world.claims().keys().next().expect("one claim");
    fixture.ok(Event::ClaimFailed(claim, ClaimFailure::BootFailed));
    fixture.ok(Event::NodeSeen(fixture.claim_node(claim, 8)));
    assert_snapshot!(fixture.show(), @"
    node c0: 8 of 8 gpus, 100 cores free, 0 seats unusable
    queue default: 8 gpus
    pool p: 1 nodes, 8 gpus, 10.00 hourly: a*1
    claim c0 train-0-0: Failed(BootFailed)
    gang train since 0s: Assembling(o0), 0 restarts, 0 failed
    ");
}

#[test]
fn node_of_a_failed_claim_is_not_released_under_a_gang() {
    let mut fixture = ordered(&[0xff], 8);
    let claim = *fixture.world.claims().keys().next().expect("one claim");
    fixture.ok(Event::NodeSeen(fixture.claim_node(claim, 8)));
    assert_eq!(fixture.admit("train", &[("c0", 0xff)]), Ok(()));
    fixture.ok(Event::ClaimFailed(claim, ClaimFailure::Vanished));
    let release = Event::Decided(Action::Release { claim });
    assert!(fixture.tell(release.clone()).is_err(), "the node is in use");
    let train = fixture.id("train");
    fixture.ok(Event::GangEnded(train)).ok(release);
}
