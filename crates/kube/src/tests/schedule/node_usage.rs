//! Usage of nodes: every pod that runs counts, whichever scheduler bound it and however it was resized since.

use muster_core::gang::Phase;
use muster_core::id::ClaimId;
use muster_core::node::Node;
use muster_core::order::ClaimState;
use serde_json::{Value, json};

use crate::tests::fixture::HostFixture;
use crate::tests::objects::{alone, bought, claim, job, node, of_job, pod, pool};
use crate::tests::schedule::cases::{TRAIN, assembling, on};

const OTHER: &str = "team/other.job";

/// A pod that requests so many cores and nothing else.
fn cores(mut pod: Value, cpu: &str) -> Value {
    pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": cpu}});
    pod
}

fn foreign(name: &str, cpu: &str, node: &str) -> Value {
    let mut pod = cores(on(alone(name), node), cpu);
    pod["spec"]["schedulerName"] = json!("other");
    pod
}

/// One more Job, of one pod that requests so many cores.
fn asks_for(stage: &mut HostFixture, cpu: &str) {
    stage.show(job("other", 1), false);
    stage.see(cores(pod("other-0", of_job("other")), cpu));
}

#[tokio::test]
async fn foreign_pod_resized_in_place_uses_more() {
    let mut stage = HostFixture::new();
    stage.show(node("n0"), false);
    stage.see(foreign("a", "1", "n0"));
    stage.see(foreign("a", "100", "n0"));
    asks_for(&mut stage, "100");
    assert_eq!(stage.phase(OTHER), Some(&Phase::Waiting), "only 100 of 190 cores are left for it");
    stage.see(foreign("a", "1", "n0"));
    assert!(matches!(stage.phase(OTHER), Some(Phase::Admitted { .. })), "{:?}", stage.phase(OTHER));
}

#[tokio::test]
async fn requests_of_a_foreign_pod_count_despite_invalid_annotations() {
    let mut stage = HostFixture::new();
    stage.show(node("n0"), false);
    let mut odd = foreign("a", "100", "n0");
    odd["metadata"]["annotations"] = json!({"gpu-fraction": "a bit"});
    stage.see(odd);
    asks_for(&mut stage, "100");
    assert_eq!(stage.phase(OTHER), Some(&Phase::Waiting), "the node is overcommitted");
}

#[tokio::test]
async fn member_resized_in_place_uses_more() {
    let mut stage = HostFixture::new();
    stage.show(node("n0"), false);
    stage.show(job("train", 1), false);
    let member = |cpu: &str| cores(on(pod("train-0", of_job("train")), "n0"), cpu);
    stage.see(member("1"));
    assert!(matches!(stage.phase(TRAIN), Some(Phase::Running { .. })));
    stage.see(member("100"));
    asks_for(&mut stage, "100");
    assert_eq!(stage.phase(OTHER), Some(&Phase::Waiting), "the node is overcommitted");
    // Under a new leader too.
    let mut next = HostFixture::new();
    next.show(node("n0"), false);
    next.show(job("train", 1), false);
    next.show(member("100"), false);
    asks_for(&mut next, "100");
    assert_eq!(next.phase(OTHER), Some(&Phase::Waiting));
    // When it is done it uses nothing.
    let mut done = member("100");
    done["status"]["phase"] = json!("Succeeded");
    stage.see(done);
    assert!(matches!(stage.phase(OTHER), Some(Phase::Admitted { .. })), "{:?}", stage.phase(OTHER));
    assert!(stage.host.excess_usage.is_empty());
}

#[tokio::test]
async fn member_bound_while_its_order_assembles_counts() {
    let (mut stage, _) = assembling(2);
    stage.show(on(pod("train-0", of_job("train")), "n0"), false);
    stage.see(node("n0"));
    assert!(matches!(stage.phase(TRAIN), Some(Phase::Assembling(_))), "{:?}", stage.phase(TRAIN));
    stage.show(job("other", 1), false);
    stage.see(pod("other-0", of_job("other")));
    let place = stage.gang(OTHER).and_then(|(_, gang)| gang.seats.first().map(|seat| seat.node));
    assert_eq!(place, None, "all GPUs of that node are taken");
}

#[tokio::test]
async fn gang_with_seats_is_not_counted_twice() {
    let mut stage = HostFixture::new();
    stage.show(node("n0"), false);
    stage.show(node("n1"), false);
    stage.show(job("train", 1), false);
    stage.show(on(pod("train-0", of_job("train")), "n0"), false);
    stage.host.run_cycle();
    assert!(matches!(stage.phase(TRAIN), Some(Phase::Running { .. })));
    assert!(stage.host.excess_usage.is_empty());
    let (_, gang) = stage.gang(TRAIN).expect("it runs");
    assert!(!gang.seats[0].devices.is_empty(), "it has its devices");
    stage.show(job("other", 1), false);
    stage.see(pod("other-0", of_job("other")));
    assert!(matches!(stage.phase(OTHER), Some(Phase::Admitted { .. })));
}

#[tokio::test]
async fn invalid_allocatable_of_a_node_leaves_the_rest_usable() {
    let mut stage = HostFixture::new();
    let mut odd = node("n0");
    odd["status"]["allocatable"]["example.com/dust"] = json!("1e40");
    odd["status"]["allocatable"]["example.com/more"] = json!("a lot");
    stage.show(odd, false);
    asks_for(&mut stage, "100");
    assert!(matches!(stage.phase(OTHER), Some(Phase::Admitted { .. })), "{:?}", stage.phase(OTHER));
}

/// A pool with two warm nodes, and their claims.
fn two_warm() -> (HostFixture, u32, u32) {
    let mut stage = HostFixture::new();
    let mut warm = pool();
    warm["spec"]["warm"] = json!({"nodes": 2});
    stage.see(warm);
    let claims = stage.claims();
    claims.iter().for_each(|id| stage.see(claim(*id)));
    (stage, claims[0], claims[1])
}

/// The node of a claim, under a name that another node may have had.
fn named(claim: u32, name: &str, uid: &str) -> Value {
    let mut node = bought(claim);
    node["metadata"]["name"] = json!(name);
    node["metadata"]["uid"] = json!(uid);
    node["metadata"]["labels"]["kubernetes.io/hostname"] = json!(name);
    node
}

#[tokio::test]
async fn node_with_the_name_of_a_deleted_node_is_another() {
    let (mut stage, first, second) = two_warm();
    stage.see(named(first, "shared", "1"));
    // The first is deleted and the second exists before the next cycle; the deletion of the claim is observed later.
    stage.see(named(second, "shared", "2"));
    stage.see_gone(claim(first));
    let claims = stage.host.world.claims();
    assert!(matches!(claims[&ClaimId(second)].state, ClaimState::Ready(_)), "{claims:?}");
    let node = stage.host.world.node_named("shared").and_then(|node| stage.host.world.node(node));
    assert!(node.is_some_and(Node::takes_more), "{node:?}");
    stage.show(job("other", 1), false);
    stage.see(pod("other-0", of_job("other")));
    assert!(matches!(stage.phase(OTHER), Some(Phase::Admitted { .. })), "{:?}", stage.phase(OTHER));
}

#[tokio::test]
async fn node_registered_again_survives_deletion_of_its_first_name() {
    let (mut stage, first, _) = two_warm();
    stage.see(named(first, "before", "1"));
    stage.see(named(first, "after", "2"));
    stage.see_gone(named(first, "before", "1"));
    let claims = stage.host.world.claims();
    assert!(matches!(claims[&ClaimId(first)].state, ClaimState::Ready(_)), "{claims:?}");
}
