//! Workloads that are deleted and made again while their old pods still end.

use muster_core::gang::Phase;
use serde_json::{Value, json};

use crate::tests::fixture::HostFixture;
use crate::tests::objects::{alone, job, node, pod};
use crate::tests::schedule::cases::{TRAIN, on};
use crate::tests::schedule::seats::{leaving, member, running, seats, told};

/// The Job `train` as it was made again.
fn again(pods: u32) -> Value {
    let mut job = job("train", pods);
    job["metadata"]["uid"] = json!("again");
    job
}

/// A pod of it.
fn heir(at: u32) -> Value {
    let mut heir = pod(&format!("heir-{at}"), ("batch/v1", "Job", "train"));
    heir["metadata"]["ownerReferences"][0]["uid"] = json!("again");
    heir
}

/// A Job of two that runs, and is deleted.
fn deleted() -> HostFixture {
    let mut stage = running(2);
    stage.show(job("train", 2), true);
    for at in 0..2 {
        stage.show(leaving(on(member(at), &format!("n{at}"))), false);
    }
    stage.host.turn();
    stage
}

#[tokio::test]
async fn a_job_that_is_made_again_has_none_of_the_old_ones_seats() {
    let mut stage = deleted();
    stage.show(again(2), false);
    for at in 0..2 {
        stage.show(heir(at), false);
    }
    stage.host.turn();
    // One seat is free, the other is not yet: half of it would start.
    stage.see_gone(on(member(0), "n0"));
    for at in 0..2 {
        assert_eq!(told(&stage, TRAIN, &format!("heir-{at}")), None);
    }
    stage.see_gone(on(member(1), "n1"));
    assert!(matches!(stage.phase(TRAIN), Some(Phase::Admitted { .. })), "{:?}", stage.phase(TRAIN));
    let record = stage.host.gangs.get(TRAIN).expect("a gang");
    assert_eq!((record.pods.len(), record.successors.len()), (2, 0));
}

#[tokio::test]
async fn a_larger_job_of_the_same_name_starts_whole_or_not_at_all() {
    let mut stage = deleted();
    stage.show(again(4), false);
    for at in 0..4 {
        stage.show(heir(at), false);
    }
    for at in 0..2 {
        stage.see_gone(on(member(at), &format!("n{at}")));
    }
    assert_eq!(stage.phase(TRAIN), Some(&Phase::Waiting));
    assert_eq!(seats(&stage, TRAIN), 0);
    stage.show(node("n2"), false);
    stage.see(node("n3"));
    assert!(matches!(stage.phase(TRAIN), Some(Phase::Admitted { .. })), "{:?}", stage.phase(TRAIN));
    assert_eq!(seats(&stage, TRAIN), 4);
}

#[tokio::test]
async fn who_leads_next_tells_the_old_from_the_new() {
    let mut stage = HostFixture::new();
    let at = |mut object: Value, hour: u32| {
        object["metadata"]["creationTimestamp"] = json!(format!("2026-11-01T{hour}:00:00Z"));
        object
    };
    stage.show(node("n0"), false);
    stage.show(node("n1"), false);
    stage.show(at(again(2), 12), false);
    for one in 0..2 {
        stage.show(at(heir(one), 12), false);
    }
    stage.show(at(leaving(on(member(0), "n0")), 10), false);
    stage.host.turn();
    assert_eq!(stage.phase(TRAIN), None, "it begins when nobody of the old is left");
    // What the old one takes is not given away.
    stage.see(alone("other"));
    let place = stage.gang("team/other.pod").map(|(_, gang)| gang.seats[0].node);
    assert_eq!(place, stage.host.world.node_named("n1"));
    stage.see_gone(alone("other"));
    stage.see_gone(leaving(on(member(0), "n0")));
    assert!(matches!(stage.phase(TRAIN), Some(Phase::Admitted { .. })), "{:?}", stage.phase(TRAIN));
}

/// A pod of a gang by annotations alone: nothing made it that could be told from another.
fn marked(name: &str, size: u32, gpus: u32) -> Value {
    let mut pod = alone(name);
    pod["metadata"]["annotations"] =
        json!({"muster.sh/gang": "pair", "muster.sh/gang-size": size.to_string()});
    let amounts = json!({"cpu": "1", "nvidia.com/gpu": gpus.to_string()});
    pod["spec"]["containers"][0]["resources"] = json!({"limits": amounts, "requests": amounts});
    pod
}

const PAIR: &str = "team/pair";

#[tokio::test]
async fn nobody_is_put_on_a_seat_that_is_too_small() {
    let mut stage = HostFixture::new();
    for at in ["0", "1"] {
        stage.show(node(&format!("n{at}")), false);
        stage.show(on(marked(&format!("a{at}"), 2, 4), &format!("n{at}")), false);
    }
    stage.host.turn();
    assert!(matches!(stage.phase(PAIR), Some(Phase::Running { .. })), "{:?}", stage.phase(PAIR));
    for at in ["0", "1"] {
        stage.show(leaving(on(marked(&format!("a{at}"), 2, 4), &format!("n{at}"))), false);
        stage.show(marked(&format!("b{at}"), 2, 8), false);
    }
    stage.host.turn();
    stage.see_gone(on(marked("a0", 2, 4), "n0"));
    assert_eq!((told(&stage, PAIR, "b0"), told(&stage, PAIR, "b1")), (None, None));
    stage.see_gone(on(marked("a1", 2, 4), "n1"));
    // It starts anew, as what it is.
    let (_, gang) = stage.gang(PAIR).expect("a gang");
    assert!(matches!(gang.phase, Phase::Admitted { .. }), "{:?}", gang.phase);
    assert_eq!(gang.spec.roles[0].request.gpu_milli(), 8_000);
}

#[tokio::test]
async fn members_that_all_end_make_room_for_a_whole_gang_and_not_one_by_one() {
    let mut stage = HostFixture::new();
    for at in ["0", "1"] {
        stage.show(node(&format!("n{at}")), false);
        stage.show(on(marked(&format!("a{at}"), 2, 8), &format!("n{at}")), false);
    }
    stage.host.turn();
    for at in ["0", "1"] {
        stage.show(leaving(on(marked(&format!("a{at}"), 2, 8), &format!("n{at}"))), false);
        stage.show(marked(&format!("b{at}"), 2, 8), false);
    }
    stage.host.turn();
    stage.see_gone(on(marked("a0", 2, 8), "n0"));
    assert_eq!((told(&stage, PAIR, "b0"), told(&stage, PAIR, "b1")), (None, None));
    stage.see_gone(on(marked("a1", 2, 8), "n1"));
    assert!(told(&stage, PAIR, "b0").is_some() && told(&stage, PAIR, "b1").is_some());
}
