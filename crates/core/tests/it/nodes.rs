//! Nodes come, move, change and go, with members on them or without.

use insta::assert_snapshot;
use muster_core::Event;
use muster_core::event::Refusal;
use muster_core::topology::ROOT;
use muster_testkit::build;

use crate::books::Books;

const ZONE: &str = "topology.kubernetes.io/zone";
const RACK: &str = "topology.muster.sh/rack";

#[test]
fn nodes_of_one_kind_share_a_class_wherever_they_stand() {
    let mut books = Books::new();
    books.ok(Event::NodeSeen(build::node("a1", 8, &[(ZONE, "a"), (RACK, "r1")])));
    books.ok(Event::NodeSeen(build::node(
        "b1",
        8,
        &[(ZONE, "b"), ("kubernetes.io/hostname", "b1")],
    )));
    assert_eq!(books.world.class_count(), 1);
    books.ok(Event::NodeSeen(build::node("c1", 8, &[("disk", "ssd")])));
    assert_eq!(books.world.class_count(), 2);
    assert_eq!(books.world.states().in_use(), 2);
}

#[test]
fn a_node_that_moves_takes_its_members_along() {
    let mut books = Books::new();
    books.ok(Event::NodeSeen(build::node("a1", 8, &[(ZONE, "a")])));
    books.gang(build::gang("train", 1, 4));
    assert_eq!(books.admit("train", &[("a1", 0x0f)]), Ok(()));
    let before = books.show();
    books.ok(Event::NodeSeen(build::node("a1", 8, &[(ZONE, "b"), (RACK, "r1"), ("disk", "ssd")])));
    assert_eq!(books.show(), before);
    let leaf = books.world.node(books.world.node_named("a1").expect("here")).expect("here").leaf;
    assert_eq!(books.world.topology().display(leaf), "b/r1");
}

#[test]
fn an_empty_node_may_change_its_size() {
    let mut books = Books::new();
    books.node("a1", 8).node("a1", 4).node("a1", 16);
    assert_snapshot!(books.show(), @"node a1: 16 of 16 gpus, 100 cores free, 0 seats");
    assert_eq!(books.world.states().in_use(), 1, "old sizes are forgotten");
    assert_eq!(books.world.states().len(), 2, "and their numbers used again");
}

#[test]
fn a_node_may_grow_under_its_members() {
    let mut books = Books::new();
    books.node("a1", 4).gang(build::gang("train", 1, 4));
    let train = books.id("train");
    assert_eq!(books.admit("train", &[("a1", 0x0f)]), Ok(()));
    books.node("a1", 8);
    assert_snapshot!(books.show(), @"
    node a1: 4 of 8 gpus, 99 cores free, 1 seats
    queue default: 4 gpus
    gang train since 0s: Admitted, 0 restarts, 0 failed
    ");
    books.ok(Event::GangEnded(train));
    assert_snapshot!(books.show(), @"node a1: 8 of 8 gpus, 100 cores free, 0 seats");
}

#[test]
fn a_node_that_is_not_ready_keeps_its_members_and_takes_no_others() {
    let mut books = Books::new();
    books.node("a1", 8).gang(build::gang("train", 1, 4)).gang(build::gang("next", 1, 4));
    assert_eq!(books.admit("train", &[("a1", 0x0f)]), Ok(()));
    let mut shut = build::node("a1", 8, &[]);
    shut.ready = false;
    books.ok(Event::NodeSeen(shut));
    assert!(books.world.capacity().tally(ROOT).entries().is_empty());
    assert!(books.admit("next", &[("a1", 0xf0)]).is_err());
    assert_snapshot!(books.show(), @"
    node a1: 4 of 8 gpus, 99 cores free, 1 seats unusable
    queue default: 4 gpus
    gang train since 0s: Admitted, 0 restarts, 0 failed
    gang next since 0s: Waiting, 0 restarts, 0 failed
    ");
    books.node("a1", 8);
    assert_eq!(books.admit("next", &[("a1", 0xf0)]), Ok(()));
}

#[test]
fn members_leave_a_node_that_is_not_ready_as_any_other() {
    let mut books = Books::new();
    books.node("a1", 8).gang(build::gang("train", 1, 4));
    let train = books.id("train");
    assert_eq!(books.admit("train", &[("a1", 0x0f)]), Ok(()));
    let mut shut = build::node("a1", 8, &[]);
    shut.ready = false;
    books.ok(Event::NodeSeen(shut)).ok(Event::GangEnded(train)).node("a1", 8);
    assert_snapshot!(books.show(), @"node a1: 8 of 8 gpus, 100 cores free, 0 seats");
}

#[test]
fn idle_time_begins_when_the_last_member_leaves() {
    let mut books = Books::new();
    books.node("a1", 8).gang(build::gang("one", 1, 4)).gang(build::gang("two", 1, 4));
    let (one, two) = (books.id("one"), books.id("two"));
    assert_eq!(books.admit("one", &[("a1", 0x0f)]), Ok(()));
    assert_eq!(books.admit("two", &[("a1", 0xf0)]), Ok(()));
    let idle = |books: &Books| {
        let node = books.world.node_named("a1").and_then(|idx| books.world.node(idx));
        node.expect("here").idle_since.0 / 60_000
    };
    books.later(5).ok(Event::GangEnded(one));
    assert_eq!(idle(&books), 0);
    books.later(5).ok(Event::GangEnded(two));
    assert_eq!(idle(&books), 10);
    books.later(5).node("a1", 8);
    assert_eq!(idle(&books), 10, "being seen is not being used");
}

#[test]
fn a_node_that_makes_no_sense_is_refused() {
    let mut books = Books::new();
    let gone = Event::NodeGone("a1".into());
    assert_eq!(books.tell(gone), Err(Refusal::UnknownNode("a1".into())));
    let huge = Event::NodeSeen(build::node("a1", 65, &[]));
    assert_eq!(books.tell(huge), Err(Refusal::TooManyDevices("a1".into())));
    let claim = muster_core::id::ClaimId(7);
    let orphan = Event::NodeSeen(books.claim_node(claim, 8));
    assert_eq!(books.tell(orphan), Err(Refusal::UnknownClaim(claim)));
    books.node("a1", 64);
}
