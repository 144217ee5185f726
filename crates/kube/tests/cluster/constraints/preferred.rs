//! Preferred affinity, anti-affinity and spread: followed where there is room, and no pod waits for it.

use std::collections::{BTreeMap, BTreeSet};

use super::zoned_cluster::{
    HOST, ZONE, cluster_with_zones, foreign_pod, gang_of_app, nodes_of, remove_with_prefix,
};
use crate::fixture::clusters::kwok_cluster;
use crate::fixture::controller::Controller;
use crate::fixture::manifests::pod;
use crate::fixture::pods::until_bound;

fn preferred_anti_affinity(app: &str, key: &str) -> String {
    format!(
        "affinity: {{podAntiAffinity: {{preferredDuringSchedulingIgnoredDuringExecution: [{{weight: 100, podAffinityTerm: {{topologyKey: {key}, labelSelector: {{matchLabels: {{app: {app}}}}}}}}}]}}}}"
    )
}

fn preferred_affinity(app: &str, key: &str) -> String {
    preferred_anti_affinity(app, key).replace("podAntiAffinity", "podAffinity")
}

fn preferred_spread(app: &str, key: &str) -> String {
    format!(
        "topologySpreadConstraints: [{{topologyKey: {key}, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway, labelSelector: {{matchLabels: {{app: {app}}}}}}}]"
    )
}

/// How many of these pods are on each node.
fn shares(nodes: &[String]) -> Vec<usize> {
    let mut shares: BTreeMap<&String, usize> = BTreeMap::new();
    nodes.iter().for_each(|node| *shares.entry(node).or_default() += 1);
    let mut shares: Vec<usize> = shares.into_values().collect();
    shares.sort_unstable();
    shares
}

#[tokio::test(flavor = "multi_thread")]
async fn preferred_affinity_is_followed_while_there_is_room() {
    let Some(cluster) = cluster_with_zones(&["a", "b", "b"]).await else { return };
    foreign_pod(&cluster, "web", "web", "n2", 2, "").await;
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    gang_of_app(&cluster, "next", "next", 2, &preferred_affinity("web", HOST)).await;
    until_bound(&cluster, "next-", 2).await;
    assert_eq!(nodes_of(&cluster, "next-").await, ["n2", "n2"]);
    gang_of_app(&cluster, "zone", "zone", 6, &preferred_affinity("web", ZONE)).await;
    until_bound(&cluster, "zone-", 6).await;
    assert!(!nodes_of(&cluster, "zone-").await.contains(&"n0".to_owned()));
    // Only another node has room for eight.
    gang_of_app(&cluster, "large", "large", 8, &preferred_affinity("web", HOST)).await;
    until_bound(&cluster, "large-", 8).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn preferred_anti_affinity_yields_when_no_other_node_fits() {
    let Some(cluster) = kwok_cluster(2).await else { return };
    foreign_pod(&cluster, "web", "web", "n0", 2, "").await;
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    // Without the preference the fuller node would be filled first.
    gang_of_app(&cluster, "shy", "shy", 4, &preferred_anti_affinity("web", HOST)).await;
    until_bound(&cluster, "shy-", 4).await;
    assert_eq!(nodes_of(&cluster, "shy-").await, ["n1", "n1", "n1", "n1"]);
    gang_of_app(&cluster, "beside", "beside", 6, &preferred_anti_affinity("web", HOST)).await;
    until_bound(&cluster, "beside-", 6).await;
    assert!(nodes_of(&cluster, "beside-").await.contains(&"n0".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn preferred_spread_separates_members_while_there_is_room() {
    let Some(cluster) = cluster_with_zones(&["a", "a", "b"]).await else { return };
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    // All of them would fit on one node.
    gang_of_app(&cluster, "three", "three", 3, &preferred_spread("three", HOST)).await;
    until_bound(&cluster, "three-", 3).await;
    assert_eq!(nodes_of(&cluster, "three-").await, ["n0", "n1", "n2"]);
    gang_of_app(&cluster, "apart", "apart", 3, &preferred_anti_affinity("apart", HOST)).await;
    until_bound(&cluster, "apart-", 3).await;
    assert_eq!(nodes_of(&cluster, "apart-").await, ["n0", "n1", "n2"]);
    gang_of_app(&cluster, "zones", "zones", 2, &preferred_spread("zones", ZONE)).await;
    until_bound(&cluster, "zones-", 2).await;
    let nodes: BTreeSet<String> = nodes_of(&cluster, "zones-").await.into_iter().collect();
    assert!(nodes.len() == 2 && nodes.contains("n2"), "{nodes:?}");
    gang_of_app(&cluster, "five", "five", 5, &preferred_spread("five", HOST)).await;
    until_bound(&cluster, "five-", 5).await;
    assert_eq!(shares(&nodes_of(&cluster, "five-").await), [1, 2, 2]);
    // Only one node still has room for six, and all six go there.
    remove_with_prefix(&cluster, "five-").await;
    remove_with_prefix(&cluster, "zones-").await;
    foreign_pod(&cluster, "full", "full", "n0", 6, "").await;
    foreign_pod(&cluster, "fuller", "full", "n1", 6, "").await;
    gang_of_app(&cluster, "six", "six", 6, &preferred_spread("six", HOST)).await;
    until_bound(&cluster, "six-", 6).await;
    assert_eq!(shares(&nodes_of(&cluster, "six-").await), [6]);
}

#[tokio::test(flavor = "multi_thread")]
async fn single_pods_are_spread_one_by_one() {
    let Some(cluster) = kwok_cluster(3).await else { return };
    // All exist before the controller starts: none is bound when the first is placed.
    for at in 0..7 {
        let one = pod(&format!("web-{at}"), 1, "app: web", "", &preferred_spread("web", HOST));
        cluster.apply(&one).await.expect("a pod");
    }
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    until_bound(&cluster, "web-", 7).await;
    assert_eq!(shares(&nodes_of(&cluster, "web-").await), [2, 2, 3]);
}
