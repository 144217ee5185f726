//! Host ports, inter-pod affinity and anti-affinity, topology spread, cordons, gates and priority.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams};
use muster_testkit::cluster::{Cluster, Role};
use serde_json::{Value, json};

use super::zoned_cluster::{
    HOST, ZONE, cluster_with_zones, foreign_pod, gang_of_app, gang_of_app_with, nodes_of, pods,
    remove_with_prefix, until_gang_reports, until_pod_reports,
};
use crate::fixture::clusters::{karpenter_cluster, kwok_cluster};
use crate::fixture::controller::Controller;
use crate::fixture::manifests::{POOL, pod};
use crate::fixture::pods::{bound_with_prefix, until_bound};
use crate::observer::{GANG, LEAST};

fn anti_affinity(app: &str, key: &str) -> String {
    format!(
        "affinity: {{podAntiAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{{topologyKey: {key}, labelSelector: {{matchLabels: {{app: {app}}}}}}}]}}}}"
    )
}

fn affinity(app: &str, key: &str) -> String {
    anti_affinity(app, key).replace("podAntiAffinity", "podAffinity")
}

fn spread(app: &str, key: &str, skew: u32) -> String {
    format!(
        "topologySpreadConstraints: [{{topologyKey: {key}, maxSkew: {skew}, whenUnsatisfiable: DoNotSchedule, labelSelector: {{matchLabels: {{app: {app}}}}}}}]"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn host_port_is_used_once_per_node() {
    let Some(cluster) = kwok_cluster(2).await else { return };
    let with_port = |text: &str, port: &str| {
        text.replace(
            "image: none",
            &format!("image: none\n    ports: [{{containerPort: 80, {port}}}]"),
        )
    };
    let other = pod("other", 1, "", "", "nodeName: n0")
        .replace("schedulerName: muster", "schedulerName: another");
    cluster.apply(&with_port(&other, "hostPort: 8080")).await.expect("a pod");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    for at in 0..2 {
        let labels = format!("{GANG}: serve");
        let marks = format!("muster.sh/gang: serve, muster.sh/gang-size: '2', {LEAST}: '2'");
        let pod = pod(&format!("serve-{at}"), 1, &labels, &marks, "");
        cluster.apply(&with_port(&pod, "hostPort: 8080")).await.expect("a pod");
    }
    until_gang_reports(&cluster, "serve", "port 8080/TCP").await;
    // The same port of another protocol is free.
    let udp = with_port(&pod("udp", 1, "", "", ""), "hostPort: 8080, protocol: UDP");
    cluster.apply(&udp).await.expect("a pod");
    until_bound(&cluster, "udp", 1).await;
    remove_with_prefix(&cluster, "other").await;
    until_bound(&cluster, "serve-", 2).await;
    assert_eq!(nodes_of(&cluster, "serve-").await, ["n0", "n1"]);
    // One more pod fits nowhere until one of them leaves, also if it wants the port on one address only.
    let late = with_port(&pod("late", 1, "", "", ""), "hostPort: 8080, hostIP: 10.0.0.1");
    cluster.apply(&late).await.expect("a pod");
    until_pod_reports(&cluster, "late", "port 8080/TCP").await;
    remove_with_prefix(&cluster, "serve-").await;
    until_bound(&cluster, "late", 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn self_anti_affinity_gives_each_pod_its_own_node() {
    let Some(cluster) = kwok_cluster(2).await else { return };
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    gang_of_app(&cluster, "pair", "db", 2, &anti_affinity("db", HOST)).await;
    until_bound(&cluster, "pair-", 2).await;
    assert_eq!(nodes_of(&cluster, "pair-").await, ["n0", "n1"]);
    // A third pod has no node without the app; a pod without the rule shares a node, unless the pods there exclude it.
    cluster
        .apply(&pod("third", 1, "app: db", "", &anti_affinity("db", HOST)))
        .await
        .expect("a pod");
    cluster.apply(&pod("plain", 1, "app: db", "", "")).await.expect("a pod");
    cluster.apply(&pod("cache", 1, "app: cache", "", "")).await.expect("a pod");
    until_bound(&cluster, "cache", 1).await;
    until_pod_reports(&cluster, "third", "").await;
    until_pod_reports(&cluster, "plain", "").await;
    remove_with_prefix(&cluster, "pair-0").await;
    remove_with_prefix(&cluster, "pair-1").await;
    until_bound(&cluster, "third", 1).await;
    until_bound(&cluster, "plain", 1).await;
    let (third, plain) = (nodes_of(&cluster, "third").await, nodes_of(&cluster, "plain").await);
    assert_ne!(third, plain);
}

#[tokio::test(flavor = "multi_thread")]
async fn self_anti_affinity_buys_a_node_per_pod() {
    let Some(cluster) = karpenter_cluster().await else { return };
    cluster.apply(POOL).await.expect("a pool");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    // Both would fit on one node.
    gang_of_app(&cluster, "pair", "db", 2, &anti_affinity("db", HOST)).await;
    until_bound(&cluster, "pair-", 2).await;
    let nodes = nodes_of(&cluster, "pair-").await;
    assert_ne!(nodes[0], nodes[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn pod_affinity_places_the_gang_in_the_zone_of_its_target() {
    let Some(cluster) = cluster_with_zones(&["a", "b", "b"]).await else { return };
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    gang_of_app(&cluster, "db", "db", 3, &affinity("web", ZONE)).await;
    until_gang_reports(&cluster, "db", "no pods with app=web").await;
    foreign_pod(&cluster, "web", "web", "n1", 7, "").await;
    until_bound(&cluster, "db-", 3).await;
    let nodes = nodes_of(&cluster, "db-").await;
    assert!(nodes.iter().all(|node| node != "n0"), "{nodes:?}");
    // The first pods of an app may start in any zone, all in one.
    gang_of_app(&cluster, "ring", "ring", 8, &affinity("ring", ZONE)).await;
    until_bound(&cluster, "ring-", 8).await;
    let nodes: BTreeSet<String> = nodes_of(&cluster, "ring-").await.into_iter().collect();
    assert!(!nodes.contains("n0") || nodes.len() == 1, "{nodes:?}");
    // A label that is no level of the topology is not supported for this.
    gang_of_app(&cluster, "shelf", "shelf", 2, &affinity("shelf", "example.com/shelf")).await;
    until_gang_reports(&cluster, "shelf", "which is no level of the topology").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn anti_affinity_holds_in_both_directions() {
    let Some(cluster) = cluster_with_zones(&["a", "b"]).await else { return };
    foreign_pod(&cluster, "shy", "shy", "n0", 1, &anti_affinity("db", ZONE)).await;
    foreign_pod(&cluster, "web", "web", "n1", 1, "").await;
    // Both exist before the controller starts and would fit on any node: one cycle decides both.
    gang_of_app(&cluster, "left", "left", 1, &anti_affinity("right", HOST)).await;
    gang_of_app(&cluster, "right", "right", 1, "").await;
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    until_bound(&cluster, "left-", 1).await;
    until_bound(&cluster, "right-", 1).await;
    assert_ne!(nodes_of(&cluster, "left-").await, nodes_of(&cluster, "right-").await);
    gang_of_app(&cluster, "db", "db", 2, "").await;
    until_bound(&cluster, "db-", 2).await;
    assert_eq!(nodes_of(&cluster, "db-").await, ["n1", "n1"]);
    gang_of_app(&cluster, "away", "away", 2, &anti_affinity("web", ZONE)).await;
    until_bound(&cluster, "away-", 2).await;
    assert_eq!(nodes_of(&cluster, "away-").await, ["n0", "n0"]);
    // A gang that excludes both apps fits nowhere, until one of them leaves.
    let both = anti_affinity("web", ZONE).replace(
        "app: web}",
        "}, matchExpressions: [{key: app, operator: In, values: [web, shy]}]",
    );
    gang_of_app(&cluster, "both", "both", 1, &both).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(bound_with_prefix(&cluster, "both-").await, 0);
    remove_with_prefix(&cluster, "web").await;
    until_bound(&cluster, "both-", 1).await;
    assert_eq!(nodes_of(&cluster, "both-").await, ["n1"]);
    // One in each of two zones; no zone is left for a third.
    gang_of_app(&cluster, "apart", "apart", 2, &anti_affinity("apart", ZONE)).await;
    until_bound(&cluster, "apart-", 2).await;
    assert_eq!(nodes_of(&cluster, "apart-").await, ["n0", "n1"]);
    gang_of_app(&cluster, "three", "three", 3, &anti_affinity("three", ZONE)).await;
    until_gang_reports(&cluster, "three", "a domain for each of 3 members").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn topology_spread_is_kept_or_reported() {
    let Some(cluster) = cluster_with_zones(&["a", "b", "c"]).await else { return };
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    // All six would fit on one node.
    gang_of_app(&cluster, "even", "even", 6, &spread("even", HOST, 1)).await;
    until_bound(&cluster, "even-", 6).await;
    assert_eq!(nodes_of(&cluster, "even-").await, ["n0", "n0", "n1", "n1", "n2", "n2"]);
    gang_of_app(&cluster, "zones", "zones", 3, &spread("zones", ZONE, 1)).await;
    until_bound(&cluster, "zones-", 3).await;
    assert_eq!(nodes_of(&cluster, "zones-").await, ["n0", "n1", "n2"]);
    // Single pods are counted one by one.
    for at in 0..3 {
        let one = pod(&format!("one-{at}"), 1, "app: one", "", &spread("one", ZONE, 1));
        cluster.apply(&one).await.expect("a pod");
    }
    until_bound(&cluster, "one-", 3).await;
    assert_eq!(nodes_of(&cluster, "one-").await, ["n0", "n1", "n2"]);
    gang_of_app(&cluster, "racks", "racks", 2, &spread("racks", "example.com/rack", 1)).await;
    until_gang_reports(&cluster, "racks", "waits: topology spread over example.com/rack").await;
    gang_of_app_with(&cluster, "mixed", "mixed", 2, |at| {
        if at == 0 { spread("mixed", ZONE, 1) } else { String::new() }
    })
    .await;
    // A member without the rule goes to any node.
    until_bound(&cluster, "mixed-", 2).await;
}

async fn patch_node(cluster: &Cluster, name: &str, patch: Value) {
    let nodes: Api<Node> = Api::all(cluster.client(Role::Admin).await);
    nodes.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.expect("patched");
}

#[tokio::test(flavor = "multi_thread")]
async fn cordons_foreign_pods_gates_and_priorities_are_respected() {
    let Some(cluster) = kwok_cluster(2).await else { return };
    patch_node(&cluster, "n0", json!({"spec": {"unschedulable": true}})).await;
    foreign_pod(&cluster, "other", "other", "n1", 6, "").await;
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    // Two of eight GPUs are free, beside six of another scheduler's pod.
    cluster.apply(&pod("two", 2, "", "", "")).await.expect("a pod");
    until_bound(&cluster, "two", 1).await;
    assert_eq!(nodes_of(&cluster, "two").await, ["n1"]);
    cluster.apply(&pod("one", 1, "", "", "")).await.expect("a pod");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(bound_with_prefix(&cluster, "one").await, 0, "the only room is on a cordoned node");
    patch_node(&cluster, "n0", json!({"spec": {"unschedulable": false}})).await;
    until_bound(&cluster, "one", 1).await;
    assert_eq!(nodes_of(&cluster, "one").await, ["n0"]);
    // A gang waits for a member with a foreign scheduling gate.
    gang_of_app_with(&cluster, "held", "held", 2, |at| {
        if at == 0 {
            "schedulingGates: [{name: example.com/later}]".to_owned()
        } else {
            String::new()
        }
    })
    .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(bound_with_prefix(&cluster, "held-").await, 0);
    let open = Patch::Merge(json!({"spec": {"schedulingGates": null}}));
    pods(&cluster).await.patch("held-0", &PatchParams::default(), &open).await.expect("ungated");
    until_bound(&cluster, "held-", 2).await;
    // Of two pods for the same room, the one of higher priority gets it, although it came later.
    foreign_pod(&cluster, "full", "full", "n0", 5, "").await;
    let high = "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000}";
    cluster.apply(high).await.expect("a class");
    cluster.apply(&pod("low", 6, "", "", "")).await.expect("a pod");
    cluster.apply(&pod("high", 6, "", "", "priorityClassName: high")).await.expect("a pod");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(
        bound_with_prefix(&cluster, "low").await + bound_with_prefix(&cluster, "high").await,
        0
    );
    remove_with_prefix(&cluster, "other").await;
    until_bound(&cluster, "high", 1).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(bound_with_prefix(&cluster, "low").await, 0);
}
