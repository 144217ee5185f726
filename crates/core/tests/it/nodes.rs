//! Nodes appear, move, change and go, with members on them or without.

use insta::assert_snapshot;
use muster_core::Event;
use muster_core::event::Refusal;
use muster_core::topology::ROOT;
use muster_testkit::build;

use crate::fixture::Fixture;

const ZONE: &str = "topology.kubernetes.io/zone";
const RACK: &str = "topology.muster.sh/rack";

#[test]
fn nodes_of_one_kind_share_a_class_in_any_place() {
    let mut fixture = Fixture::new();
    fixture.ok(Event::NodeSeen(build::node("a1", 8, &[(ZONE, "a"), (RACK, "r1")])));
    fixture.ok(Event::NodeSeen(build::node(
        "b1",
        8,
        &[(ZONE, "b"), ("kubernetes.io/hostname", "b1")],
    )));
    assert_eq!(fixture.world.class_count(), 1);
    fixture.ok(Event::NodeSeen(build::node("c1", 8, &[("disk", "ssd")])));
    assert_eq!(fixture.world.class_count(), 2);
    assert_eq!(fixture.world.states().in_use(), 2);
}

#[test]
fn node_moved_in_the_topology_keeps_its_members() {
    let mut fixture = Fixture::new();
    fixture.ok(Event::NodeSeen(build::node("a1", 8, &[(ZONE, "a")])));
    fixture.gang(build::gang("train", 1, 4));
    assert_eq!(fixture.admit("train", &[("a1", 0x0f)]), Ok(()));
    let before = fixture.show();
    fixture.ok(Event::NodeSeen(build::node(
        "a1",
        8,
        &[(ZONE, "b"), (RACK, "r1"), ("disk", "ssd")],
    )));
    assert_eq!(fixture.show(), before);
    let leaf =
        fixture.world.node(fixture.world.node_named("a1").expect("here")).expect("here").leaf;
    assert_eq!(fixture.world.topology().display(leaf), "b/r1");
}

#[test]
fn empty_node_may_change_its_size() {
    let mut fixture = Fixture::new();
    fixture.node("a1", 8).node("a1", 4).node("a1", 16);
    assert_snapshot!(fixture.show(), @"node a1: 16 of 16 gpus, 100 cores free, 0 seats");
    assert_eq!(fixture.world.states().in_use(), 1, "old sizes are forgotten");
    assert_eq!(fixture.world.states().len(), 2, "and their numbers used again");
}

#[test]
fn node_may_grow_under_its_members() {
    let mut fixture = Fixture::new();
    fixture.node("a1", 4).gang(build::gang("train", 1, 4));
    let train = fixture.id("train");
    assert_eq!(fixture.admit("train", &[("a1", 0x0f)]), Ok(()));
    fixture.node("a1", 8);
    assert_snapshot!(fixture.show(), @"
    node a1: 4 of 8 gpus, 99 cores free, 1 seats
    queue default: 4 gpus
    gang train since 0s: Admitted, 0 restarts, 0 failed
    ");
    fixture.ok(Event::GangEnded(train));
    assert_snapshot!(fixture.show(), @"node a1: 8 of 8 gpus, 100 cores free, 0 seats");
}

#[test]
fn unready_node_keeps_its_members_and_takes_no_others() {
    let mut fixture = Fixture::new();
    fixture.node("a1", 8).gang(build::gang("train", 1, 4)).gang(build::gang("next", 1, 4));
    assert_eq!(fixture.admit("train", &[("a1", 0x0f)]), Ok(()));
    let mut shut = build::node("a1", 8, &[]);
    shut.ready = false;
    fixture.ok(Event::NodeSeen(shut));
    assert!(fixture.world.capacity().tally(ROOT).entries().is_empty());
    assert!(fixture.admit("next", &[("a1", 0xf0)]).is_err());
    assert_snapshot!(fixture.show(), @"
    node a1: 4 of 8 gpus, 99 cores free, 1 seats unusable
    queue default: 4 gpus
    gang train since 0s: Admitted, 0 restarts, 0 failed
    gang next since 0s: Waiting, 0 restarts, 0 failed
    ");
    fixture.node("a1", 8);
    assert_eq!(fixture.admit("next", &[("a1", 0xf0)]), Ok(()));
}

#[test]
fn members_leave_an_unready_node_as_any_other() {
    let mut fixture = Fixture::new();
    fixture.node("a1", 8).gang(build::gang("train", 1, 4));
    let train = fixture.id("train");
    assert_eq!(fixture.admit("train", &[("a1", 0x0f)]), Ok(()));
    let mut shut = build::node("a1", 8, &[]);
    shut.ready = false;
    fixture.ok(Event::NodeSeen(shut)).ok(Event::GangEnded(train)).node("a1", 8);
    assert_snapshot!(fixture.show(), @"node a1: 8 of 8 gpus, 100 cores free, 0 seats");
}

#[test]
fn idle_time_begins_when_the_last_member_leaves() {
    let mut fixture = Fixture::new();
    fixture.node("a1", 8).gang(build::gang("one", 1, 4)).gang(build::gang("two", 1, 4));
    let (one, two) = (fixture.id("one"), fixture.id("two"));
    assert_eq!(fixture.admit("one", &[("a1", 0x0f)]), Ok(()));
    assert_eq!(fixture.admit("two", &[("a1", 0xf0)]), Ok(()));
    let idle = |fixture: &Fixture| {
        let node = fixture.world.node_named("a1").and_then(|idx| fixture.world.node(idx));
        node.expect("here").idle_since.0 / 60_000
    };
    fixture.later(5).ok(Event::GangEnded(one));
    assert_eq!(idle(&fixture), 0);
    fixture.later(5).ok(Event::GangEnded(two));
    assert_eq!(idle(&fixture), 10);
    fixture.later(5).node("a1", 8);
    assert_eq!(idle(&fixture), 10, "being seen is not being used");
}

#[test]
fn invalid_node_spec_is_refused() {
    let mut fixture = Fixture::new();
    let gone = Event::NodeGone("a1".into());
    assert_eq!(fixture.tell(gone), Err(Refusal::UnknownNode("a1".into())));
    let huge = Event::NodeSeen(build::node("a1", 65, &[]));
    assert_eq!(fixture.tell(huge), Err(Refusal::TooManyDevices("a1".into())));
    let claim = muster_core::id::ClaimId(7);
    let orphan = Event::NodeSeen(fixture.claim_node(claim, 8));
    assert_eq!(fixture.tell(orphan), Err(Refusal::UnknownClaim(claim)));
    fixture.node("a1", 64);
}
