//! Bought nodes: readiness, idle time, foreign pods, and release.

use std::collections::BTreeSet;

use muster_api::pod::GpuNames;
use muster_core::gang::Phase;
use muster_core::id::ClaimId;
use muster_core::order::{Claim, ClaimState};
use serde_json::{Value, json};

use crate::config::Config;
use crate::tests::fixture::HostFixture;
use crate::tests::objects::{bought_node, claim, job, node, of_job, pod, pool, single_pod};
use crate::tests::schedule::cases::{TRAIN, assembling, on};

fn tainted(mut node: Value, key: &str) -> Value {
    node["spec"]["taints"] = json!([{"key": key, "effect": "NoSchedule"}]);
    node
}

fn foreign_pod(name: &str, gpus: u32, node: &str) -> Value {
    let mut pod = on(single_pod(name), node);
    pod["spec"]["schedulerName"] = json!("other");
    let amounts = json!({"nvidia.com/gpu": gpus.to_string()});
    pod["spec"]["containers"][0]["resources"] = json!({"limits": amounts, "requests": amounts});
    pod
}

#[tokio::test]
async fn startup_taint_delays_readiness_without_rolling_the_order_back() {
    let (mut fixture, claims) = assembling(2);
    let order = fixture.order(TRAIN);
    fixture.see(tainted(bought_node(claims[0]), "node.cilium.io/agent-not-ready"));
    fixture.see(bought_node(claims[1]));
    assert_eq!(fixture.order(TRAIN), order, "{:?}", fixture.phase(TRAIN));
    fixture.see(bought_node(claims[0]));
    assert!(
        matches!(fixture.phase(TRAIN), Some(Phase::Admitted { .. })),
        "{:?}",
        fixture.phase(TRAIN)
    );
}

#[tokio::test]
async fn tolerated_taint_does_not_delay_readiness() {
    let mut fixture = HostFixture::new();
    fixture.see(pool());
    fixture.show(job("train", 1), false);
    let mut tolerant = pod("train-0", of_job("train"));
    tolerant["spec"]["tolerations"] = json!([{"key": "nvidia.com/gpu", "operator": "Exists"}]);
    fixture.see(tolerant);
    let claims = fixture.claims();
    fixture.see(tainted(bought_node(claims[0]), "nvidia.com/gpu"));
    assert!(
        matches!(fixture.phase(TRAIN), Some(Phase::Admitted { .. })),
        "{:?}",
        fixture.phase(TRAIN)
    );
}

#[tokio::test]
async fn foreign_pod_on_a_bought_node_does_not_make_its_claim_unready() {
    let mut fixture = HostFixture::new();
    let mut warm = pool();
    warm["spec"]["warm"] = json!({"nodes": 1});
    fixture.see(warm);
    let claim = fixture.claims()[0];
    fixture.see(bought_node(claim));
    let is_ready =
        |fixture: &HostFixture| fixture.host.world.claims().values().all(Claim::is_ready);
    assert!(is_ready(&fixture));
    fixture.see(foreign_pod("other", 1, &format!("node-{claim}")));
    assert!(is_ready(&fixture), "{:?}", fixture.host.world.claims());
    // What the foreign pod uses is not given to a gang.
    fixture.show(job("train", 1), false);
    fixture.see(pod("train-0", of_job("train")));
    assert!(
        !matches!(fixture.phase(TRAIN), Some(Phase::Admitted { .. })),
        "{:?}",
        fixture.phase(TRAIN)
    );
}

/// A node that shows this many network adapters.
fn with_adapters(mut node: Value, count: u32) -> Value {
    node["status"]["allocatable"]["vpc.amazonaws.com/efa"] = json!(count.to_string());
    node
}

/// A pool whose nodes have four of them.
fn pool_with_adapters() -> Value {
    let mut pool = pool();
    pool["spec"]["offerings"][0]["allocatable"]["vpc.amazonaws.com/efa"] = json!(4);
    pool
}

#[tokio::test]
async fn node_is_ready_only_when_it_shows_all_network_adapters() {
    let mut fixture = HostFixture::new();
    fixture.see(pool_with_adapters());
    fixture.show(job("train", 1), false);
    let mut wants = pod("train-0", of_job("train"));
    for list in ["limits", "requests"] {
        wants["spec"]["containers"][0]["resources"][list]["vpc.amazonaws.com/efa"] = json!("4");
    }
    fixture.see(wants);
    let (order, claim) = (fixture.order(TRAIN), fixture.claims()[0]);
    for few in [
        bought_node(claim),
        with_adapters(bought_node(claim), 0),
        with_adapters(bought_node(claim), 3),
    ] {
        fixture.see(few);
        assert_eq!(fixture.order(TRAIN), order, "{:?}", fixture.phase(TRAIN));
        let state = fixture.host.world.claims()[&ClaimId(claim)].state;
        assert!(matches!(state, ClaimState::Registered(_)), "{state:?}");
    }
    fixture.see(with_adapters(bought_node(claim), 4));
    assert!(
        matches!(fixture.phase(TRAIN), Some(Phase::Admitted { .. })),
        "{:?}",
        fixture.phase(TRAIN)
    );
}

#[tokio::test]
async fn network_adapters_of_a_foreign_pod_count_for_readiness() {
    let mut fixture = HostFixture::new();
    let mut warm = pool_with_adapters();
    warm["spec"]["warm"] = json!({"nodes": 1});
    fixture.see(warm);
    let claim = fixture.claims()[0];
    fixture.see(with_adapters(bought_node(claim), 4));
    let mut other = foreign_pod("other", 0, &format!("node-{claim}"));
    let amounts = json!({"vpc.amazonaws.com/efa": "3"});
    other["spec"]["containers"][0]["resources"] = json!({"limits": amounts, "requests": amounts});
    fixture.see(other);
    let world = &fixture.host.world;
    assert!(world.claims()[&ClaimId(claim)].is_ready(), "{:?}", world.claims());
    let node = world.node_named(&format!("node-{claim}")).and_then(|node| world.node(node));
    let free = &world.class(node.expect("seen").class).allocatable;
    let left = free.iter().find(|(of, _)| world.names().name(*of) == "vpc.amazonaws.com/efa");
    assert_eq!(left.map(|(_, amount)| amount), Some(1), "the others are not free");
}

#[tokio::test]
async fn nodes_of_one_offering_share_a_class_and_deleted_ones_are_forgotten() {
    let (mut fixture, claims) = assembling(2);
    claims.iter().for_each(|claim| fixture.see(bought_node(*claim)));
    let class_of = |fixture: &HostFixture, claim: u32| {
        let node = fixture.host.world.node_named(&format!("node-{claim}")).expect("seen");
        fixture.host.world.node(node).expect("there").class
    };
    assert_eq!(class_of(&fixture, claims[0]), class_of(&fixture, claims[1]));
    fixture.see_gone(bought_node(claims[0]));
    assert_eq!(fixture.host.seen_nodes.len(), 1);
}

#[tokio::test]
async fn configured_gpu_names_count_as_gpus_up_to_the_device_maximum() {
    let gpus = GpuNames { others: BTreeSet::from(["example.com/accelerator".to_owned()]) };
    let mut fixture = HostFixture::with(&Config { gpus, ..Config::default() });
    let mut other = node("other");
    other["status"]["allocatable"] =
        json!({"cpu": "8", "pods": "9", "example.com/accelerator": "4"});
    let mut many = node("many");
    many["status"]["allocatable"]["nvidia.com/gpu"] = json!("80");
    fixture.show(other, false);
    fixture.see(many);
    let mut by_name = pool();
    by_name["spec"]["offerings"][0]["allocatable"]["example.com/accelerator"] = json!(4);
    fixture.see(by_name);
    let listed = &fixture.host.world.pools().iter().next().expect("seen").1.offerings[0].spec;
    assert!(!listed.allocatable.contains_key("example.com/accelerator"), "{listed:?}");
    let gpus = |name: &str| {
        let node =
            fixture.host.world.node_named(name).and_then(|node| fixture.host.world.node(node));
        node.map(|node| fixture.host.world.class(node.class).gpus)
    };
    assert_eq!((gpus("other"), gpus("many")), (Some(4), Some(64)));
}

/// A node with the annotation of its idle time.
fn with_idle_since(mut node: Value, idle_since: &str) -> Value {
    node["metadata"]["annotations"] = json!({"muster.sh/idle-since": idle_since});
    node
}

fn idle_since(fixture: &HostFixture, name: &str) -> Option<i64> {
    let node = fixture.host.world.node_named(name).and_then(|node| fixture.host.world.node(node));
    node.map(|node| node.idle_since.0)
}

#[tokio::test]
async fn next_leader_continues_the_idle_time_of_a_node() {
    let mut fixture = HostFixture::new();
    let mut patient = pool();
    patient["spec"]["idleAfter"] = json!("1h");
    fixture.show(patient, false);
    for id in [7, 8] {
        fixture.show(claim(id), false);
    }
    fixture.show(with_idle_since(bought_node(7), "2026-11-01T10:00:00.250Z"), false);
    fixture.show(with_idle_since(bought_node(8), "yesterday"), false);
    fixture.host.run_cycle();
    let released = |fixture: &HostFixture, id| fixture.host.world.claims()[&ClaimId(id)].releasing;
    assert_eq!(idle_since(&fixture, "node-7"), Some(1_793_527_200_250));
    assert!(released(&fixture, 7), "its hour was over long ago");
    assert!(!released(&fixture, 8), "an invalid annotation is ignored");
}

#[tokio::test]
async fn node_with_a_bound_member_is_not_idle_whatever_its_annotation() {
    let mut fixture = HostFixture::new();
    fixture.show(pool(), false);
    fixture.show(claim(7), false);
    fixture.show(with_idle_since(bought_node(7), "2026-11-01T10:00:00Z"), false);
    fixture.show(job("train", 1), false);
    fixture.show(on(pod("train-0", of_job("train")), "node-7"), false);
    fixture.host.run_cycle();
    assert!(!fixture.host.world.claims()[&ClaimId(7)].releasing);
    fixture.see_gone(on(pod("train-0", of_job("train")), "node-7"));
    let now = jiff::Timestamp::now().as_millisecond();
    assert!(idle_since(&fixture, "node-7").is_some_and(|since| now - since < 60_000));
}

#[tokio::test]
async fn recovered_claim_has_the_age_of_its_node_claim() {
    let mut fixture = HostFixture::new();
    fixture.show(pool(), false);
    let mut stuck = claim(7);
    stuck["metadata"]["creationTimestamp"] = json!("2026-11-01T10:00:00Z");
    stuck["status"]["conditions"][0]["lastTransitionTime"] = json!("2026-11-01T10:01:00Z");
    fixture.show(stuck, false);
    fixture.host.run_cycle();
    let found = &fixture.host.world.claims()[&ClaimId(7)];
    assert_eq!((found.requested.0, found.since.0), (1_793_527_200_000, 1_793_527_260_000));
    assert!(found.releasing, "its registration has timed out");
}

/// A bought node that is idle, and whose idle time is over at once.
fn idle(pool: Value) -> HostFixture {
    let mut fixture = HostFixture::new();
    fixture.show(pool, false);
    fixture.show(claim(7), false);
    fixture.show(with_idle_since(bought_node(7), "2026-11-01T10:00:00Z"), false);
    fixture
}

fn is_released(fixture: &HostFixture, id: u32) -> bool {
    fixture.host.world.claims().get(&ClaimId(id)).is_none_or(|claim| claim.releasing)
}

#[tokio::test]
async fn node_with_foreign_pods_is_not_idle_until_they_are_gone() {
    let mut patient = pool();
    patient["spec"]["idleAfter"] = json!("1h");
    let mut fixture = idle(patient);
    fixture.show(foreign_pod("other", 1, "node-7"), false);
    fixture.host.run_cycle();
    assert!(!is_released(&fixture, 7), "it was released under a foreign pod");
    fixture.see_gone(foreign_pod("other", 1, "node-7"));
    assert!(!is_released(&fixture, 7));
    let now = jiff::Timestamp::now().as_millisecond();
    assert!(idle_since(&fixture, "node-7").is_some_and(|since| now - since < 60_000));
}

#[tokio::test]
async fn daemon_static_and_finished_pods_do_not_keep_a_node() {
    let mut of_set = foreign_pod("agent", 0, "node-7");
    of_set["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "a", "controller": true,
    }]);
    let mut of_file = foreign_pod("proxy", 0, "node-7");
    of_file["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "1"});
    let mut over = foreign_pod("over", 1, "node-7");
    over["status"]["phase"] = json!("Succeeded");
    let mut fixture = idle(pool());
    [of_set, of_file, over].into_iter().for_each(|pod| fixture.show(pod, false));
    fixture.host.run_cycle();
    assert!(is_released(&fixture, 7));
}

#[tokio::test]
async fn stopped_warm_nodes_are_not_bought_on_kubernetes() {
    let mut fixture = HostFixture::new();
    let mut stopped = pool();
    stopped["spec"]["warm"] = json!({"nodes": 1, "stopped": 2});
    stopped["spec"]["offerings"][0]["startTime"] = json!("5s");
    fixture.see(stopped);
    assert_eq!(fixture.claims().len(), 1, "they would be paid for and never used");
}

#[tokio::test]
async fn claim_with_a_node_claim_is_karpenters_whatever_its_pool_says_now() {
    let mut other = pool();
    other["spec"]["provider"] = json!({"provisioningRequest": {"className": "check.example.com"}});
    let mut fixture = HostFixture::new();
    fixture.show(other, false);
    fixture.show(claim(7), false);
    fixture.show(bought_node(7), false);
    fixture.host.run_cycle();
    assert!(!fixture.host.is_autoscaler_claim(ClaimId(7)), "its NodeClaim would be left behind");
}

/// A node of an autoscaler that is assigned to a claim.
fn assigned(id: u32) -> Value {
    let mut node = bought_node(id);
    node["metadata"]["labels"]["muster.sh/claim"] = json!(null);
    node["metadata"]["labels"].as_object_mut().expect("labels").retain(|_, value| !value.is_null());
    node["metadata"]["annotations"] = json!({
        "muster.sh/claim": id.to_string(), "muster.sh/pool": "gpu",
        "muster.sh/offering": "gpu8/zone-a/on-demand",
    });
    node
}

#[tokio::test]
async fn autoscaler_node_stays_assigned_while_its_pool_is_missing() {
    let mut fixture = HostFixture::new();
    fixture.show(assigned(7), false);
    fixture.show(job("train", 1), false);
    fixture.show(on(pod("train-0", of_job("train")), "node-7"), false);
    fixture.host.run_cycle();
    let node =
        fixture.host.world.node_named("node-7").and_then(|node| fixture.host.world.node(node));
    assert_eq!(node.and_then(|node| node.claim), Some(ClaimId(7)));
    assert!(!fixture.host.ordered_writes.is_busy("node node-7"), "it was released under a member");
    assert!(fixture.host.is_autoscaler_claim(ClaimId(7)), "it would be deleted as a NodeClaim");
}

#[tokio::test]
async fn pod_observed_in_the_same_cycle_as_its_node_gets_its_seat() {
    for waiting in ["a-waits", "z-waits"] {
        let mut fixture = HostFixture::new();
        fixture.see(single_pod(waiting));
        fixture.show(node("n0"), false);
        fixture.show(on(single_pod("m-runs"), "n0"), false);
        fixture.host.run_cycle();
        let name = |pod: &str| format!("team/{pod}.pod");
        let phases = [waiting, "m-runs"].map(|pod| fixture.phase(&name(pod)).cloned());
        assert!(matches!(phases[0], Some(Phase::Waiting)), "{phases:?}");
        assert!(matches!(phases[1], Some(Phase::Running { .. })), "{phases:?}");
    }
}
