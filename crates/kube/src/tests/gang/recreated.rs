//! Workloads that are deleted and recreated while their old pods still terminate.

use muster_core::gang::Phase;
use serde_json::{Value, json};

use crate::tests::fixture::HostFixture;
use crate::tests::objects::{job, node, pod, single_pod};
use crate::tests::schedule::cases::{TRAIN, on};
use crate::tests::schedule::seats::{assigned_to, leaving, member, running, seats};

/// The recreated Job `train`.
fn again(pods: u32) -> Value {
    let mut job = job("train", pods);
    job["metadata"]["uid"] = json!("again");
    job
}

/// A pod of the recreated Job.
fn successor(at: u32) -> Value {
    let mut successor = pod(&format!("successor-{at}"), ("batch/v1", "Job", "train"));
    successor["metadata"]["ownerReferences"][0]["uid"] = json!("again");
    successor
}

/// A running Job of two that is deleted.
fn deleted() -> HostFixture {
    let mut fixture = running(2);
    fixture.show(job("train", 2), true);
    for at in 0..2 {
        fixture.show(leaving(on(member(at), &format!("n{at}"))), false);
    }
    fixture.host.run_cycle();
    fixture
}

#[tokio::test]
async fn recreated_job_has_none_of_its_predecessors_seats() {
    let mut fixture = deleted();
    fixture.show(again(2), false);
    for at in 0..2 {
        fixture.show(successor(at), false);
    }
    fixture.host.run_cycle();
    // Only one seat is free: half of it would start.
    fixture.see_gone(on(member(0), "n0"));
    for at in 0..2 {
        assert_eq!(assigned_to(&fixture, TRAIN, &format!("successor-{at}")), None);
    }
    fixture.see_gone(on(member(1), "n1"));
    assert!(
        matches!(fixture.phase(TRAIN), Some(Phase::Admitted { .. })),
        "{:?}",
        fixture.phase(TRAIN)
    );
    let record = fixture.host.gangs.get(TRAIN).expect("a gang");
    assert_eq!((record.pods.len(), record.successors.len()), (2, 0));
}

#[tokio::test]
async fn larger_job_of_the_same_name_starts_whole_or_not_at_all() {
    let mut fixture = deleted();
    fixture.show(again(4), false);
    for at in 0..4 {
        fixture.show(successor(at), false);
    }
    for at in 0..2 {
        fixture.see_gone(on(member(at), &format!("n{at}")));
    }
    assert_eq!(fixture.phase(TRAIN), Some(&Phase::Waiting));
    assert_eq!(seats(&fixture, TRAIN), 0);
    fixture.show(node("n2"), false);
    fixture.see(node("n3"));
    assert!(
        matches!(fixture.phase(TRAIN), Some(Phase::Admitted { .. })),
        "{:?}",
        fixture.phase(TRAIN)
    );
    assert_eq!(seats(&fixture, TRAIN), 4);
}

#[tokio::test]
async fn new_leader_tells_the_recreated_job_from_the_old_one() {
    let mut fixture = HostFixture::new();
    let at = |mut object: Value, hour: u32| {
        object["metadata"]["creationTimestamp"] = json!(format!("2026-11-01T{hour}:00:00Z"));
        object
    };
    fixture.show(node("n0"), false);
    fixture.show(node("n1"), false);
    fixture.show(at(again(2), 12), false);
    for one in 0..2 {
        fixture.show(at(successor(one), 12), false);
    }
    fixture.show(at(leaving(on(member(0), "n0")), 10), false);
    fixture.host.run_cycle();
    assert_eq!(fixture.phase(TRAIN), None, "it starts when no old pod is left");
    // The seats of the old one are not given to others.
    fixture.see(single_pod("other"));
    let place = fixture.gang("team/other.pod").map(|(_, gang)| gang.seats[0].node);
    assert_eq!(place, fixture.host.world.node_named("n1"));
    fixture.see_gone(single_pod("other"));
    fixture.see_gone(leaving(on(member(0), "n0")));
    assert!(
        matches!(fixture.phase(TRAIN), Some(Phase::Admitted { .. })),
        "{:?}",
        fixture.phase(TRAIN)
    );
}

/// A pod of a gang by annotations alone: it has no owner whose UID could tell two gangs apart.
fn marked(name: &str, size: u32, gpus: u32) -> Value {
    let mut pod = single_pod(name);
    pod["metadata"]["annotations"] =
        json!({"muster.sh/gang": "pair", "muster.sh/gang-size": size.to_string()});
    let amounts = json!({"cpu": "1", "nvidia.com/gpu": gpus.to_string()});
    pod["spec"]["containers"][0]["resources"] = json!({"limits": amounts, "requests": amounts});
    pod
}

const PAIR: &str = "team/pair";

#[tokio::test]
async fn no_pod_is_bound_to_a_seat_that_is_too_small() {
    let mut fixture = HostFixture::new();
    for at in ["0", "1"] {
        fixture.show(node(&format!("n{at}")), false);
        fixture.show(on(marked(&format!("a{at}"), 2, 4), &format!("n{at}")), false);
    }
    fixture.host.run_cycle();
    assert!(
        matches!(fixture.phase(PAIR), Some(Phase::Running { .. })),
        "{:?}",
        fixture.phase(PAIR)
    );
    for at in ["0", "1"] {
        fixture.show(leaving(on(marked(&format!("a{at}"), 2, 4), &format!("n{at}"))), false);
        fixture.show(marked(&format!("b{at}"), 2, 8), false);
    }
    fixture.host.run_cycle();
    fixture.see_gone(on(marked("a0", 2, 4), "n0"));
    assert_eq!(
        (assigned_to(&fixture, PAIR, "b0"), assigned_to(&fixture, PAIR, "b1")),
        (None, None)
    );
    fixture.see_gone(on(marked("a1", 2, 4), "n1"));
    // It starts over with its new spec.
    let (_, gang) = fixture.gang(PAIR).expect("a gang");
    assert!(matches!(gang.phase, Phase::Admitted { .. }), "{:?}", gang.phase);
    assert_eq!(gang.spec.roles[0].request.gpu_milli(), 8_000);
}

#[tokio::test]
async fn successors_start_as_a_whole_when_all_old_pods_have_ended() {
    let mut fixture = HostFixture::new();
    for at in ["0", "1"] {
        fixture.show(node(&format!("n{at}")), false);
        fixture.show(on(marked(&format!("a{at}"), 2, 8), &format!("n{at}")), false);
    }
    fixture.host.run_cycle();
    for at in ["0", "1"] {
        fixture.show(leaving(on(marked(&format!("a{at}"), 2, 8), &format!("n{at}"))), false);
        fixture.show(marked(&format!("b{at}"), 2, 8), false);
    }
    fixture.host.run_cycle();
    fixture.see_gone(on(marked("a0", 2, 8), "n0"));
    assert_eq!(
        (assigned_to(&fixture, PAIR, "b0"), assigned_to(&fixture, PAIR, "b1")),
        (None, None)
    );
    fixture.see_gone(on(marked("a1", 2, 8), "n1"));
    assert!(
        assigned_to(&fixture, PAIR, "b0").is_some() && assigned_to(&fixture, PAIR, "b1").is_some()
    );
}
