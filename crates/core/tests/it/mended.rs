//! What once upset the books, one case each. Every step is audited.

use insta::assert_snapshot;
use muster_core::Event;
use muster_core::order::ClaimFailure;
use muster_core::plan::Action;
use muster_testkit::build;

use crate::books::Books;

/// One pool, and a gang with an order of one claim for its members.
fn ordered(members: &[u64], gpus: u16) -> Books {
    let mut books = Books::new();
    books.ok(Event::PoolSet(build::pool("p", vec![build::offering("a", 10.0)])));
    books.gang(build::gang("train", members.len() as u32, gpus));
    books.place(books.order("train", &[], members));
    books
}

#[test]
fn a_node_that_shrinks_under_its_members_recovers_as_they_leave() {
    let mut books = Books::new();
    books.node("a1", 8).gang(build::gang("one", 1, 4)).gang(build::gang("two", 1, 4));
    assert_eq!(books.admit("one", &[("a1", 0x0f)]), Ok(()));
    assert_eq!(books.admit("two", &[("a1", 0xf0)]), Ok(()));
    let mut small = build::node("a1", 6, &[]);
    small.allocatable = build::amounts(1, 1_000);
    books.ok(Event::NodeSeen(small));
    let (one, two) = (books.id("one"), books.id("two"));
    books.ok(Event::GangEnded(one));
    assert_snapshot!(books.show(), @"
    node a1: 4 of 6 gpus, 0 cores free, 1 seats
    queue default: 4 gpus
    gang two since 0s: Admitted, 0 restarts, 0 failed
    ");
    books.node("a1", 8).ok(Event::GangEnded(two));
    assert_snapshot!(books.show(), @"node a1: 8 of 8 gpus, 100 cores free, 0 seats");
}

#[test]
fn a_pool_rewritten_with_other_sizes_and_prices_counts_its_claims_anew() {
    let mut books = ordered(&[0x0f], 4);
    let mut large = build::offering("a", 25.0);
    large.gpus = 16;
    books.ok(Event::PoolSet(build::pool("p", vec![large])));
    assert_snapshot!(books.show(), @"
    queue default: 4 gpus
    pool p: 1 nodes, 16 gpus, 25.00 hourly: a*1
    claim c0 train-0-0: Requested
    gang train since 0s: Assembling(o0), 0 restarts, 0 failed
    ");
}

#[test]
fn a_node_that_flaps_while_its_order_assembles_holds_its_seats_once() {
    for (members, gpus) in [(&[0x0f, 0xf0][..], 4), (&[0, 0, 0][..], 0)] {
        let mut books = ordered(members, gpus);
        let claim = *books.world.claims().keys().next().expect("one claim");
        for ready in [true, false, true, true] {
            let mut seen = books.claim_node(claim, 8);
            seen.ready = ready;
            books.ok(Event::NodeSeen(seen));
            let held = books.world.orders().values().next().expect("one order").held.len();
            assert_eq!(held, members.len(), "ready: {ready}");
        }
        let seats: Vec<(&str, u64)> = members.iter().map(|bits| ("c0", *bits)).collect();
        assert_eq!(books.admit("train", &seats), Ok(()));
    }
}

#[test]
fn a_node_whose_claim_becomes_known_late_is_counted_once() {
    let mut books = ordered(&[0xff], 8);
    books.node("c0", 8);
    let claim = *books.world.claims().keys().next().expect("one claim");
    books.ok(Event::NodeSeen(books.claim_node(claim, 8))).ok(Event::NodeGone("c0".into()));
    assert_snapshot!(books.show(), @"
    queue default: 8 gpus
    pool p: 1 nodes, 8 gpus, 10.00 hourly: a*1
    claim c0 train-0-0: Failed(Vanished)
    gang train since 0s: Assembling(o0), 0 restarts, 0 failed
    ");
}

#[test]
fn a_failed_claims_node_is_not_used_when_it_is_seen_again() {
    let mut books = ordered(&[0xff], 8);
    let claim = *books.world.claims().keys().next().expect("one claim");
    books.ok(Event::ClaimFailed(claim, ClaimFailure::BootFailed));
    books.ok(Event::NodeSeen(books.claim_node(claim, 8)));
    assert_snapshot!(books.show(), @"
    node c0: 8 of 8 gpus, 100 cores free, 0 seats unusable
    queue default: 8 gpus
    pool p: 1 nodes, 8 gpus, 10.00 hourly: a*1
    claim c0 train-0-0: Failed(BootFailed)
    gang train since 0s: Assembling(o0), 0 restarts, 0 failed
    ");
}

#[test]
fn the_node_of_a_failed_claim_is_not_released_under_a_gang() {
    let mut books = ordered(&[0xff], 8);
    let claim = *books.world.claims().keys().next().expect("one claim");
    books.ok(Event::NodeSeen(books.claim_node(claim, 8)));
    assert_eq!(books.admit("train", &[("c0", 0xff)]), Ok(()));
    books.ok(Event::ClaimFailed(claim, ClaimFailure::Vanished));
    let release = Event::Decided(Action::Release { claim });
    assert!(books.tell(release.clone()).is_err(), "the node is in use");
    let train = books.id("train");
    books.ok(Event::GangEnded(train)).ok(release);
}
