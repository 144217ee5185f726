//! A host that begins with what another has left: it goes on from there, and nobody is the worse for it.

use muster_core::gang::Phase;
use muster_core::id::ClaimId;
use muster_core::order::ClaimState;
use serde_json::{Value, json};

use crate::provision::order_object::{order_name, written};
use crate::tests::fixture::HostFixture;
use crate::tests::objects::{bought, claim, job, node, of_job, pod, pool};
use crate::tests::schedule::cases::{TRAIN, assembling, on};

/// Ten o'clock, and what that is in the World.
const TEN: &str = "2026-11-01T10:00:00Z";
const TEN_MS: i64 = 1_793_527_200_000;

fn made_at(mut object: Value, when: &str) -> Value {
    object["metadata"]["creationTimestamp"] = json!(when);
    object
}

/// The object of a gang that Muster made of the Job `train`.
fn gang_object(status: &Value) -> Value {
    json!({
        "apiVersion": "muster.sh/v1alpha1", "kind": "Gang",
        "metadata": {
            "name": "train.job", "namespace": "team", "uid": "gang", "creationTimestamp": TEN,
            "labels": {"app.kubernetes.io/managed-by": "muster"},
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "train"}],
        },
        "spec": {}, "status": status,
    })
}

/// The object of the order that assembles for a gang.
fn order_object(stage: &HostFixture, gang: &str) -> Value {
    let id = stage.order(gang).expect("it has an order");
    let order = &stage.host.world.orders()[&id];
    let spec = written(&stage.host.world, &order.spec, 1).expect("it can be written");
    json!({
        "apiVersion": "muster.sh/v1alpha1", "kind": "Order",
        "metadata": {"name": order_name(id), "uid": "order", "creationTimestamp": TEN},
        "spec": spec,
    })
}

/// Another host that has seen the pool and the Job `train` with its pods, and has not looked yet.
fn another(pods: u32) -> HostFixture {
    let mut stage = HostFixture::new();
    stage.show(pool(), false);
    stage.show(made_at(job("train", pods), TEN), false);
    for at in 0..pods {
        stage.show(pod(&format!("train-{at}"), of_job("train")), false);
    }
    stage
}

#[tokio::test]
async fn who_waits_has_waited_since_its_work_was_submitted() {
    let mut stage = another(2);
    stage.host.turn();
    let (_, gang) = stage.gang(TRAIN).expect("it is there");
    assert_eq!((gang.submitted.0, gang.waits_since.0), (TEN_MS, TEN_MS));
    // Its turn was over an hour later, and it stands behind those who waited then.
    let mut stage = another(2);
    stage.show(gang_object(&json!({"waitingSince": "2026-11-01T11:00:00Z"})), false);
    stage.host.turn();
    let (_, gang) = stage.gang(TRAIN).expect("it is there");
    assert_eq!((gang.submitted.0, gang.waits_since.0), (TEN_MS, TEN_MS + 3_600_000));
    // What is told of another that had its name does not count.
    let mut stage = another(2);
    stage.show(gang_object(&json!({"waitingSince": "2026-10-01T11:00:00Z"})), false);
    stage.host.turn();
    let (_, gang) = stage.gang(TRAIN).expect("it is there");
    assert_eq!(gang.waits_since.0, TEN_MS);
}

#[tokio::test]
async fn who_runs_does_so_since_its_pods_do() {
    let mut stage = HostFixture::new();
    stage.show(node("n0"), false);
    stage.show(made_at(job("train", 1), "2026-10-30T10:00:00Z"), false);
    let mut runs = on(pod("train-0", of_job("train")), "n0");
    runs["status"] = json!({"phase": "Running", "startTime": TEN});
    stage.show(made_at(runs, "2026-10-31T10:00:00Z"), false);
    stage.host.turn();
    let Some(Phase::Running { at }) = stage.phase(TRAIN) else {
        panic!("{:?}", stage.phase(TRAIN))
    };
    assert_eq!(at.0, TEN_MS, "not since it was submitted, and not since it waited");
}

#[tokio::test]
async fn an_order_goes_on_with_what_has_come_and_what_was_never_asked_for() {
    let (first, claims) = assembling(3);
    let order = order_object(&first, TRAIN);
    let mut stage = another(3);
    stage.show(order, false);
    // One is ready, one is under way, and before the third was asked for somebody was killed.
    stage.show(claim(claims[0]), false);
    stage.show(bought(claims[0]), false);
    stage.show(claim(claims[1]), false);
    stage.host.turn();
    assert_eq!(stage.order(TRAIN), first.order(TRAIN), "{:?}", stage.phase(TRAIN));
    assert_eq!(stage.claims(), claims, "nothing is asked for twice");
    let order = &stage.host.world.orders()[&stage.order(TRAIN).expect("just seen")];
    assert_eq!((order.placed.0, order.top_ups), (TEN_MS, 1));
    assert!(matches!(stage.host.world.claims()[&ClaimId(claims[0])].state, ClaimState::Ready(_)));
    stage.show(bought(claims[1]), false);
    stage.see(bought(claims[2]));
    assert!(matches!(stage.phase(TRAIN), Some(Phase::Admitted { .. })), "{:?}", stage.phase(TRAIN));
}

#[tokio::test]
async fn an_order_that_comes_too_late_is_nobodys_and_goes() {
    let (first, _) = assembling(1);
    let late = order_object(&first, TRAIN);
    let mut stage = HostFixture::new();
    stage.see(pool());
    let name = late["metadata"]["name"].as_str().expect("a name").to_owned();
    assert!(!stage.host.ordered_writes.is_busy(&name));
    stage.see(late);
    assert!(stage.host.ordered_writes.is_busy(&name), "it is not removed");
}

#[tokio::test]
async fn who_was_being_stopped_is_stopped_whole() {
    let sent_away = |name: &str, node: &str| {
        let mut pod = on(pod(name, of_job("train")), node);
        pod["metadata"]["deletionTimestamp"] = json!(TEN);
        pod["status"] = json!({"phase": "Running", "conditions": [{
            "type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler",
            "message": "Muster stops the whole gang",
        }]});
        pod
    };
    let runs = |name: &str, node: &str| on(pod(name, of_job("train")), node);
    let show = |one: Value, other: Value| {
        let mut stage = HostFixture::new();
        stage.show(node("n0"), false);
        stage.show(node("n1"), false);
        stage.show(job("train", 2), false);
        stage.show(one, false);
        stage.show(other, false);
        stage.host.turn();
        stage.phase(TRAIN).cloned()
    };
    let stopped = show(sent_away("train-0", "n0"), runs("train-1", "n1"));
    assert_eq!(stopped, Some(Phase::Stopping), "one of two is left");
    let goes_on = show(runs("train-0", "n0"), runs("train-1", "n1"));
    assert!(matches!(goes_on, Some(Phase::Running { .. })), "{goes_on:?}");
}

#[tokio::test]
async fn who_is_on_a_node_whose_claim_is_leaving_is_told_and_an_idle_one_goes() {
    let leaving = |id: u32| {
        let mut claim = claim(id);
        claim["metadata"]["deletionTimestamp"] = json!(TEN);
        claim["status"]["nodeName"] = json!(format!("node-{id}"));
        claim
    };
    let mut stage = HostFixture::new();
    stage.show(pool(), false);
    for id in [7, 8] {
        stage.show(leaving(id), false);
        stage.show(bought(id), false);
    }
    stage.show(job("train", 1), false);
    stage.show(on(pod("train-0", of_job("train")), "node-7"), false);
    stage.host.turn();
    let node = |name: &str| {
        let world = &stage.host.world;
        world.node_named(name).and_then(|node| world.node(node)).expect("it is there")
    };
    assert!(node("node-7").notice.is_some(), "whoever is on it has until it is gone");
    let claims = stage.host.world.claims();
    assert!(!matches!(claims[&ClaimId(7)].state, ClaimState::Failed(_)), "{claims:?}");
    assert!(claims[&ClaimId(8)].releasing, "nobody minds");
}
