//! Whatever runs is counted, whoever put it there and whatever it has become since.

use muster_core::gang::Phase;
use muster_core::id::ClaimId;
use muster_core::node::Node;
use muster_core::order::ClaimState;
use serde_json::{Value, json};

use crate::tests::fixture::HostFixture;
use crate::tests::objects::{alone, bought, claim, job, node, of_job, pod, pool};
use crate::tests::schedule::cases::{TRAIN, assembling, on};

const OTHER: &str = "team/other.job";

/// A pod that takes so many cores and nothing else.
fn cores(mut pod: Value, cpu: &str) -> Value {
    pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": cpu}});
    pod
}

fn stranger(name: &str, cpu: &str, node: &str) -> Value {
    let mut pod = cores(on(alone(name), node), cpu);
    pod["spec"]["schedulerName"] = json!("other");
    pod
}

/// One more Job, of one pod that takes so many cores.
fn asks_for(stage: &mut HostFixture, cpu: &str) {
    stage.show(job("other", 1), false);
    stage.see(cores(pod("other-0", of_job("other")), cpu));
}

#[tokio::test]
async fn a_stranger_that_was_made_larger_where_it_is_takes_more() {
    let mut stage = HostFixture::new();
    stage.show(node("n0"), false);
    stage.see(stranger("a", "1", "n0"));
    stage.see(stranger("a", "100", "n0"));
    asks_for(&mut stage, "100");
    assert_eq!(stage.phase(OTHER), Some(&Phase::Waiting), "100 of 190 cores are left it");
    stage.see(stranger("a", "1", "n0"));
    assert!(matches!(stage.phase(OTHER), Some(Phase::Admitted { .. })), "{:?}", stage.phase(OTHER));
}

#[tokio::test]
async fn what_a_stranger_asks_for_counts_whatever_else_it_says() {
    let mut stage = HostFixture::new();
    stage.show(node("n0"), false);
    let mut odd = stranger("a", "100", "n0");
    odd["metadata"]["annotations"] = json!({"gpu-fraction": "a bit"});
    stage.see(odd);
    asks_for(&mut stage, "100");
    assert_eq!(stage.phase(OTHER), Some(&Phase::Waiting), "it is put on top of another");
}

#[tokio::test]
async fn a_member_that_was_made_larger_where_it_is_takes_more() {
    let mut stage = HostFixture::new();
    stage.show(node("n0"), false);
    stage.show(job("train", 1), false);
    let member = |cpu: &str| cores(on(pod("train-0", of_job("train")), "n0"), cpu);
    stage.see(member("1"));
    assert!(matches!(stage.phase(TRAIN), Some(Phase::Running { .. })));
    stage.see(member("100"));
    asks_for(&mut stage, "100");
    assert_eq!(stage.phase(OTHER), Some(&Phase::Waiting), "it is put on top of another");
    // Under the next leader too.
    let mut next = HostFixture::new();
    next.show(node("n0"), false);
    next.show(job("train", 1), false);
    next.show(member("100"), false);
    asks_for(&mut next, "100");
    assert_eq!(next.phase(OTHER), Some(&Phase::Waiting));
    // When it is done nothing is left of it.
    let mut done = member("100");
    done["status"]["phase"] = json!("Succeeded");
    stage.see(done);
    assert!(matches!(stage.phase(OTHER), Some(Phase::Admitted { .. })), "{:?}", stage.phase(OTHER));
    assert!(stage.host.excess_usage.is_empty());
}

#[tokio::test]
async fn a_member_that_was_put_somewhere_while_its_order_assembles_counts() {
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
async fn who_has_seats_is_not_counted_twice() {
    let mut stage = HostFixture::new();
    stage.show(node("n0"), false);
    stage.show(node("n1"), false);
    stage.show(job("train", 1), false);
    stage.show(on(pod("train-0", of_job("train")), "n0"), false);
    stage.host.turn();
    assert!(matches!(stage.phase(TRAIN), Some(Phase::Running { .. })));
    assert!(stage.host.excess_usage.is_empty());
    let (_, gang) = stage.gang(TRAIN).expect("it runs");
    assert!(!gang.seats[0].devices.is_empty(), "it has its devices");
    stage.show(job("other", 1), false);
    stage.see(pod("other-0", of_job("other")));
    assert!(matches!(stage.phase(OTHER), Some(Phase::Admitted { .. })));
}

#[tokio::test]
async fn a_node_that_offers_something_odd_is_used_for_the_rest() {
    let mut stage = HostFixture::new();
    let mut odd = node("n0");
    odd["status"]["allocatable"]["example.com/dust"] = json!("1e40");
    odd["status"]["allocatable"]["example.com/more"] = json!("a lot");
    stage.show(odd, false);
    asks_for(&mut stage, "100");
    assert!(matches!(stage.phase(OTHER), Some(Phase::Admitted { .. })), "{:?}", stage.phase(OTHER));
}

/// A pool that has two nodes always, and their claims.
fn two_warm() -> (HostFixture, u32, u32) {
    let mut stage = HostFixture::new();
    let mut warm = pool();
    warm["spec"]["warm"] = json!({"nodes": 2});
    stage.see(warm);
    let claims = stage.claims();
    claims.iter().for_each(|id| stage.see(claim(*id)));
    (stage, claims[0], claims[1])
}

/// The node of a claim, by a name that it may share with another.
fn named(claim: u32, name: &str, uid: &str) -> Value {
    let mut node = bought(claim);
    node["metadata"]["name"] = json!(name);
    node["metadata"]["uid"] = json!(uid);
    node["metadata"]["labels"]["kubernetes.io/hostname"] = json!(name);
    node
}

#[tokio::test]
async fn a_machine_that_has_the_name_of_one_that_went_is_another() {
    let (mut stage, first, second) = two_warm();
    stage.see(named(first, "shared", "1"));
    // The first is gone and the second is there before anybody looks; that its claim went is seen later.
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
async fn a_machine_that_joins_again_under_another_name_is_still_there_when_the_first_name_goes() {
    let (mut stage, first, _) = two_warm();
    stage.see(named(first, "before", "1"));
    stage.see(named(first, "after", "2"));
    stage.see_gone(named(first, "before", "1"));
    let claims = stage.host.world.claims();
    assert!(matches!(claims[&ClaimId(first)].state, ClaimState::Ready(_)), "{claims:?}");
}
