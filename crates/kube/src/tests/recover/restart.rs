//! A host that starts with the objects of a previous leader goes on from there.

use muster_core::gang::Phase;
use muster_core::id::ClaimId;
use muster_core::order::ClaimState;
use serde_json::{Value, json};

use crate::provision::order_object::{order_manifest, order_name};
use crate::tests::fixture::HostFixture;
use crate::tests::objects::{bought_node, claim, job, node, of_job, pod, pool};
use crate::tests::schedule::cases::{TRAIN, assembling, on};

/// Ten o'clock, as the API server writes it and in milliseconds.
const TEN: &str = "2026-11-01T10:00:00Z";
const TEN_MS: i64 = 1_793_527_200_000;

fn made_at(mut object: Value, when: &str) -> Value {
    object["metadata"]["creationTimestamp"] = json!(when);
    object
}

/// The Gang object that Muster created for the Job `train`.
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
fn order_object(fixture: &HostFixture, gang: &str) -> Value {
    let id = fixture.order(gang).expect("it has an order");
    let order = &fixture.host.world.orders()[&id];
    let spec = order_manifest(&fixture.host.world, &order.spec, 1).expect("it can be written");
    json!({
        "apiVersion": "muster.sh/v1alpha1", "kind": "Order",
        "metadata": {"name": order_name(id), "uid": "order", "creationTimestamp": TEN},
        "spec": spec,
    })
}

/// A new host that has observed the pool and the Job `train` with its pods, and has run no cycle yet.
fn next_leader(pods: u32) -> HostFixture {
    let mut fixture = HostFixture::new();
    fixture.show(pool(), false);
    fixture.show(made_at(job("train", pods), TEN), false);
    for at in 0..pods {
        fixture.show(pod(&format!("train-{at}"), of_job("train")), false);
    }
    fixture
}

#[tokio::test]
async fn waiting_time_counts_from_submission_after_a_restart() {
    let mut fixture = next_leader(2);
    fixture.host.run_cycle();
    let (_, gang) = fixture.gang(TRAIN).expect("it is there");
    assert_eq!((gang.submitted.0, gang.waits_since.0), (TEN_MS, TEN_MS));
    // Its time slice ended an hour later, and it queues behind gangs that waited then.
    let mut fixture = next_leader(2);
    fixture.show(gang_object(&json!({"waitingSince": "2026-11-01T11:00:00Z"})), false);
    fixture.host.run_cycle();
    let (_, gang) = fixture.gang(TRAIN).expect("it is there");
    assert_eq!((gang.submitted.0, gang.waits_since.0), (TEN_MS, TEN_MS + 3_600_000));
    // The status of an earlier gang of the same name does not count.
    let mut fixture = next_leader(2);
    fixture.show(gang_object(&json!({"waitingSince": "2026-10-01T11:00:00Z"})), false);
    fixture.host.run_cycle();
    let (_, gang) = fixture.gang(TRAIN).expect("it is there");
    assert_eq!(gang.waits_since.0, TEN_MS);
}

#[tokio::test]
async fn running_time_counts_from_the_start_of_the_pods() {
    let mut fixture = HostFixture::new();
    fixture.show(node("n0"), false);
    fixture.show(made_at(job("train", 1), "2026-10-30T10:00:00Z"), false);
    let mut runs = on(pod("train-0", of_job("train")), "n0");
    runs["status"] = json!({"phase": "Running", "startTime": TEN});
    fixture.show(made_at(runs, "2026-10-31T10:00:00Z"), false);
    fixture.host.run_cycle();
    let Some(Phase::Running { at }) = fixture.phase(TRAIN) else {
        panic!("{:?}", fixture.phase(TRAIN))
    };
    assert_eq!(at.0, TEN_MS, "not since it was submitted, and not since it waited");
}

#[tokio::test]
async fn stored_order_goes_on_with_ready_pending_and_unrequested_claims() {
    let (first, claims) = assembling(3);
    let order = order_object(&first, TRAIN);
    let mut fixture = next_leader(3);
    fixture.show(order, false);
    // One is ready, one is pending, and the previous leader was killed before it requested the third.
    fixture.show(claim(claims[0]), false);
    fixture.show(bought_node(claims[0]), false);
    fixture.show(claim(claims[1]), false);
    fixture.host.run_cycle();
    assert_eq!(fixture.order(TRAIN), first.order(TRAIN), "{:?}", fixture.phase(TRAIN));
    assert_eq!(fixture.claims(), claims, "nothing is requested twice");
    let order = &fixture.host.world.orders()[&fixture.order(TRAIN).expect("just seen")];
    assert_eq!((order.placed.0, order.top_ups), (TEN_MS, 1));
    assert!(matches!(fixture.host.world.claims()[&ClaimId(claims[0])].state, ClaimState::Ready(_)));
    fixture.show(bought_node(claims[1]), false);
    fixture.see(bought_node(claims[2]));
    assert!(
        matches!(fixture.phase(TRAIN), Some(Phase::Admitted { .. })),
        "{:?}",
        fixture.phase(TRAIN)
    );
}

#[tokio::test]
async fn order_written_too_late_by_a_previous_leader_is_deleted() {
    let (first, _) = assembling(1);
    let late = order_object(&first, TRAIN);
    let mut fixture = HostFixture::new();
    fixture.see(pool());
    let name = late["metadata"]["name"].as_str().expect("a name").to_owned();
    assert!(!fixture.host.ordered_writes.is_busy(&name));
    fixture.see(late);
    assert!(fixture.host.ordered_writes.is_busy(&name), "it is not deleted");
}

#[tokio::test]
async fn gang_that_was_being_stopped_is_stopped_as_a_whole() {
    let evicted = |name: &str, node: &str| {
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
        let mut fixture = HostFixture::new();
        fixture.show(node("n0"), false);
        fixture.show(node("n1"), false);
        fixture.show(job("train", 2), false);
        fixture.show(one, false);
        fixture.show(other, false);
        fixture.host.run_cycle();
        fixture.phase(TRAIN).cloned()
    };
    let stopped = show(evicted("train-0", "n0"), runs("train-1", "n1"));
    assert_eq!(stopped, Some(Phase::Stopping), "one of two is left");
    let goes_on = show(runs("train-0", "n0"), runs("train-1", "n1"));
    assert!(matches!(goes_on, Some(Phase::Running { .. })), "{goes_on:?}");
}

#[tokio::test]
async fn used_node_of_a_terminating_claim_gets_notice_and_an_idle_one_goes() {
    let terminating = |id: u32| {
        let mut claim = claim(id);
        claim["metadata"]["deletionTimestamp"] = json!(TEN);
        claim["status"]["nodeName"] = json!(format!("node-{id}"));
        claim
    };
    let mut fixture = HostFixture::new();
    fixture.show(pool(), false);
    for id in [7, 8] {
        fixture.show(terminating(id), false);
        fixture.show(bought_node(id), false);
    }
    fixture.show(job("train", 1), false);
    fixture.show(on(pod("train-0", of_job("train")), "node-7"), false);
    fixture.host.run_cycle();
    let node = |name: &str| {
        let world = &fixture.host.world;
        world.node_named(name).and_then(|node| world.node(node)).expect("it is there")
    };
    assert!(node("node-7").notice.is_some(), "its pods have until it is gone");
    let claims = fixture.host.world.claims();
    assert!(!matches!(claims[&ClaimId(7)].state, ClaimState::Failed(_)), "{claims:?}");
    assert!(claims[&ClaimId(8)].releasing, "it is idle");
}
