//! Nodes that were bought, and what others do to them.

use std::collections::BTreeSet;

use muster_api::pod::GpuNames;
use muster_core::gang::Phase;
use muster_core::order::Claim;
use serde_json::{Value, json};

use super::Rehearsal;
use super::cases::{TRAIN, assembling, on};
use super::objects::{alone, bought, job, node, of_job, pod, pool};
use crate::host::Config;

fn tainted(mut node: Value, key: &str) -> Value {
    node["spec"]["taints"] = json!([{"key": key, "effect": "NoSchedule"}]);
    node
}

fn stranger(name: &str, gpus: u32, node: &str) -> Value {
    let mut pod = on(alone(name), node);
    pod["spec"]["schedulerName"] = json!("other");
    let amounts = json!({"nvidia.com/gpu": gpus.to_string()});
    pod["spec"]["containers"][0]["resources"] = json!({"limits": amounts, "requests": amounts});
    pod
}

#[tokio::test]
async fn a_taint_that_passes_does_not_roll_an_order_back() {
    let (mut stage, claims) = assembling(2);
    let order = stage.order(TRAIN);
    stage.see(tainted(bought(claims[0]), "node.cilium.io/agent-not-ready"));
    stage.see(bought(claims[1]));
    assert_eq!(stage.order(TRAIN), order, "{:?}", stage.phase(TRAIN));
    stage.see(bought(claims[0]));
    assert!(matches!(stage.phase(TRAIN), Some(Phase::Admitted { .. })), "{:?}", stage.phase(TRAIN));
}

#[tokio::test]
async fn a_taint_that_members_tolerate_is_not_waited_for() {
    let mut stage = Rehearsal::new();
    stage.see(pool());
    stage.show(job("train", 1), false);
    let mut tolerant = pod("train-0", of_job("train"));
    tolerant["spec"]["tolerations"] = json!([{"key": "nvidia.com/gpu", "operator": "Exists"}]);
    stage.see(tolerant);
    let claims = stage.claims();
    stage.see(tainted(bought(claims[0]), "nvidia.com/gpu"));
    assert!(matches!(stage.phase(TRAIN), Some(Phase::Admitted { .. })), "{:?}", stage.phase(TRAIN));
}

#[tokio::test]
async fn a_stranger_on_a_bought_node_does_not_make_it_less_than_was_bought() {
    let mut stage = Rehearsal::new();
    let mut warm = pool();
    warm["spec"]["warm"] = json!({"nodes": 1});
    stage.see(warm);
    let claim = stage.claims()[0];
    stage.see(bought(claim));
    let is_ready = |stage: &Rehearsal| stage.host.world.claims().values().all(Claim::is_ready);
    assert!(is_ready(&stage));
    stage.see(stranger("other", 1, &format!("node-{claim}")));
    assert!(is_ready(&stage), "{:?}", stage.host.world.claims());
    // What the stranger has is not given away.
    stage.show(job("train", 1), false);
    stage.see(pod("train-0", of_job("train")));
    assert!(
        !matches!(stage.phase(TRAIN), Some(Phase::Admitted { .. })),
        "{:?}",
        stage.phase(TRAIN)
    );
}

#[tokio::test]
async fn nodes_that_were_bought_alike_are_alike_and_nothing_stays_of_those_that_went() {
    let (mut stage, claims) = assembling(2);
    claims.iter().for_each(|claim| stage.see(bought(*claim)));
    let class_of = |stage: &Rehearsal, claim: u32| {
        let node = stage.host.world.node_named(&format!("node-{claim}")).expect("seen");
        stage.host.world.node(node).expect("there").class
    };
    assert_eq!(class_of(&stage, claims[0]), class_of(&stage, claims[1]));
    stage.see_gone(bought(claims[0]));
    assert_eq!(stage.host.seen_nodes.len(), 1);
}

#[tokio::test]
async fn gpus_by_other_names_and_more_than_can_be_told_apart() {
    let gpus = GpuNames { others: BTreeSet::from(["example.com/accelerator".to_owned()]) };
    let mut stage = Rehearsal::with(&Config { gpus, ..Config::default() });
    let mut other = node("other");
    other["status"]["allocatable"] =
        json!({"cpu": "8", "pods": "9", "example.com/accelerator": "4"});
    let mut many = node("many");
    many["status"]["allocatable"]["nvidia.com/gpu"] = json!("80");
    stage.show(other, false);
    stage.see(many);
    let gpus = |name: &str| {
        let node = stage.host.world.node_named(name).and_then(|node| stage.host.world.node(node));
        node.map(|node| stage.host.world.class(node.class).gpus)
    };
    assert_eq!((gpus("other"), gpus("many")), (Some(4), Some(64)));
}
