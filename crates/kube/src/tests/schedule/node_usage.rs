//! Usage of nodes: every pod that runs counts, whichever scheduler bound it and however it was resized since.

use muster_core::gang::Phase;
use muster_core::id::ClaimId;
use muster_core::node::Node;
use muster_core::order::ClaimState;
use serde_json::{Value, json};

use crate::tests::fixture::HostFixture;
use crate::tests::objects::{bought_node, claim, job, node, of_job, pod, pool, single_pod};
use crate::tests::schedule::cases::{TRAIN, assembling, on};

const OTHER: &str = "team/other.job";

/// A pod that requests so many cores and nothing else.
fn cores(mut pod: Value, cpu: &str) -> Value {
    pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": cpu}});
    pod
}

fn foreign(name: &str, cpu: &str, node: &str) -> Value {
    let mut pod = cores(on(single_pod(name), node), cpu);
    pod["spec"]["schedulerName"] = json!("other");
    pod
}

/// One more Job, of one pod that requests so many cores.
fn asks_for(fixture: &mut HostFixture, cpu: &str) {
    fixture.show(job("other", 1), false);
    fixture.see(cores(pod("other-0", of_job("other")), cpu));
}

#[tokio::test]
async fn foreign_pod_resized_in_place_uses_more() {
    let mut fixture = HostFixture::new();
    fixture.show(node("n0"), false);
    fixture.see(foreign("a", "1", "n0"));
    fixture.see(foreign("a", "100", "n0"));
    asks_for(&mut fixture, "100");
    assert_eq!(
        fixture.phase(OTHER),
        Some(&Phase::Waiting),
        "only 100 of 190 cores are left for it"
    );
    fixture.see(foreign("a", "1", "n0"));
    assert!(
        matches!(fixture.phase(OTHER), Some(Phase::Admitted { .. })),
        "{:?}",
        fixture.phase(OTHER)
    );
}

#[tokio::test]
async fn requests_of_a_foreign_pod_count_despite_invalid_annotations() {
    let mut fixture = HostFixture::new();
    fixture.show(node("n0"), false);
    let mut odd = foreign("a", "100", "n0");
    odd["metadata"]["annotations"] = json!({"gpu-fraction": "a bit"});
    fixture.see(odd);
    asks_for(&mut fixture, "100");
    assert_eq!(fixture.phase(OTHER), Some(&Phase::Waiting), "the node is overcommitted");
}

#[tokio::test]
async fn member_resized_in_place_uses_more() {
    let mut fixture = HostFixture::new();
    fixture.show(node("n0"), false);
    fixture.show(job("train", 1), false);
    let member = |cpu: &str| cores(on(pod("train-0", of_job("train")), "n0"), cpu);
    fixture.see(member("1"));
    assert!(matches!(fixture.phase(TRAIN), Some(Phase::Running { .. })));
    fixture.see(member("100"));
    asks_for(&mut fixture, "100");
    assert_eq!(fixture.phase(OTHER), Some(&Phase::Waiting), "the node is overcommitted");
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
    fixture.see(done);
    assert!(
        matches!(fixture.phase(OTHER), Some(Phase::Admitted { .. })),
        "{:?}",
        fixture.phase(OTHER)
    );
    assert!(fixture.host.excess_usage.is_empty());
}

#[tokio::test]
async fn member_bound_while_its_order_assembles_counts() {
    let (mut fixture, _) = assembling(2);
    fixture.show(on(pod("train-0", of_job("train")), "n0"), false);
    fixture.see(node("n0"));
    assert!(
        matches!(fixture.phase(TRAIN), Some(Phase::Assembling(_))),
        "{:?}",
        fixture.phase(TRAIN)
    );
    fixture.show(job("other", 1), false);
    fixture.see(pod("other-0", of_job("other")));
    let place = fixture.gang(OTHER).and_then(|(_, gang)| gang.seats.first().map(|seat| seat.node));
    assert_eq!(place, None, "all GPUs of that node are taken");
}

#[tokio::test]
async fn gang_with_seats_is_not_counted_twice() {
    let mut fixture = HostFixture::new();
    fixture.show(node("n0"), false);
    fixture.show(node("n1"), false);
    fixture.show(job("train", 1), false);
    fixture.show(on(pod("train-0", of_job("train")), "n0"), false);
    fixture.host.run_cycle();
    assert!(matches!(fixture.phase(TRAIN), Some(Phase::Running { .. })));
    assert!(fixture.host.excess_usage.is_empty());
    let (_, gang) = fixture.gang(TRAIN).expect("it runs");
    assert!(!gang.seats[0].devices.is_empty(), "it has its devices");
    fixture.show(job("other", 1), false);
    fixture.see(pod("other-0", of_job("other")));
    assert!(matches!(fixture.phase(OTHER), Some(Phase::Admitted { .. })));
}

#[tokio::test]
async fn invalid_allocatable_of_a_node_leaves_the_rest_usable() {
    let mut fixture = HostFixture::new();
    let mut odd = node("n0");
    odd["status"]["allocatable"]["example.com/dust"] = json!("1e40");
    odd["status"]["allocatable"]["example.com/more"] = json!("a lot");
    fixture.show(odd, false);
    asks_for(&mut fixture, "100");
    assert!(
        matches!(fixture.phase(OTHER), Some(Phase::Admitted { .. })),
        "{:?}",
        fixture.phase(OTHER)
    );
}

/// A pool with two warm nodes, and their claims.
fn two_warm() -> (HostFixture, u32, u32) {
    let mut fixture = HostFixture::new();
    let mut warm = pool();
    warm["spec"]["warm"] = json!({"nodes": 2});
    fixture.see(warm);
    let claims = fixture.claims();
    claims.iter().for_each(|id| fixture.see(claim(*id)));
    (fixture, claims[0], claims[1])
}

/// The node of a claim, under a name that another node may have had.
fn named(claim: u32, name: &str, uid: &str) -> Value {
    let mut node = bought_node(claim);
    node["metadata"]["name"] = json!(name);
    node["metadata"]["uid"] = json!(uid);
    node["metadata"]["labels"]["kubernetes.io/hostname"] = json!(name);
    node
}

#[tokio::test]
async fn node_with_the_name_of_a_deleted_node_is_another() {
    let (mut fixture, first, second) = two_warm();
    fixture.see(named(first, "shared", "1"));
    // The first is deleted and the second exists before the next cycle; the deletion of the claim is observed later.
    fixture.see(named(second, "shared", "2"));
    fixture.see_gone(claim(first));
    let claims = fixture.host.world.claims();
    assert!(matches!(claims[&ClaimId(second)].state, ClaimState::Ready(_)), "{claims:?}");
    let node =
        fixture.host.world.node_named("shared").and_then(|node| fixture.host.world.node(node));
    assert!(node.is_some_and(Node::takes_more), "{node:?}");
    fixture.show(job("other", 1), false);
    fixture.see(pod("other-0", of_job("other")));
    assert!(
        matches!(fixture.phase(OTHER), Some(Phase::Admitted { .. })),
        "{:?}",
        fixture.phase(OTHER)
    );
}

#[tokio::test]
async fn node_registered_again_survives_deletion_of_its_first_name() {
    let (mut fixture, first, _) = two_warm();
    fixture.see(named(first, "before", "1"));
    fixture.see(named(first, "after", "2"));
    fixture.see_gone(named(first, "before", "1"));
    let claims = fixture.host.world.claims();
    assert!(matches!(claims[&ClaimId(first)].state, ClaimState::Ready(_)), "{claims:?}");
}
