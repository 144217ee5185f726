//! What pods wish of their neighbours: it is heard where there is room, and nobody waits for it.

use std::collections::{BTreeMap, BTreeSet};

use crate::controller::Controller;
use crate::stage::small_cluster;
use crate::ties::{HOST, ZONE, all_bound, foreign, gang, nodes_of, remove, zones};
use crate::words::pod;

fn away(app: &str, key: &str) -> String {
    format!(
        "affinity: {{podAntiAffinity: {{preferredDuringSchedulingIgnoredDuringExecution: [{{weight: 100, podAffinityTerm: {{topologyKey: {key}, labelSelector: {{matchLabels: {{app: {app}}}}}}}}}]}}}}"
    )
}

fn near(app: &str, key: &str) -> String {
    away(app, key).replace("podAntiAffinity", "podAffinity")
}

fn spread(app: &str, key: &str) -> String {
    format!(
        "topologySpreadConstraints: [{{topologyKey: {key}, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway, labelSelector: {{matchLabels: {{app: {app}}}}}}}]"
    )
}

/// How many of these are on each node.
fn shares(nodes: &[String]) -> Vec<usize> {
    let mut shares: BTreeMap<&String, usize> = BTreeMap::new();
    nodes.iter().for_each(|node| *shares.entry(node).or_default() += 1);
    let mut shares: Vec<usize> = shares.into_values().collect();
    shares.sort_unstable();
    shares
}

#[tokio::test(flavor = "multi_thread")]
async fn who_wishes_to_be_near_a_pod_is_put_there_while_there_is_room() {
    let Some(cluster) = zones(&["a", "b", "b"]).await else { return };
    foreign(&cluster, "web", "web", "n2", 2, "").await;
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    gang(&cluster, "next", "next", 2, &near("web", HOST)).await;
    all_bound(&cluster, "next-", 2).await;
    assert_eq!(nodes_of(&cluster, "next-").await, ["n2", "n2"]);
    gang(&cluster, "zone", "zone", 6, &near("web", ZONE)).await;
    all_bound(&cluster, "zone-", 6).await;
    assert!(!nodes_of(&cluster, "zone-").await.contains(&"n0".to_owned()));
    // There is room for eight on another node only.
    gang(&cluster, "large", "large", 8, &near("web", HOST)).await;
    all_bound(&cluster, "large-", 8).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_wishes_not_to_meet_a_pod_meets_it_only_where_there_is_no_other_node() {
    let Some(cluster) = small_cluster(2).await else { return };
    foreign(&cluster, "web", "web", "n0", 2, "").await;
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    // The node that is fuller would be taken first.
    gang(&cluster, "shy", "shy", 4, &away("web", HOST)).await;
    all_bound(&cluster, "shy-", 4).await;
    assert_eq!(nodes_of(&cluster, "shy-").await, ["n1", "n1", "n1", "n1"]);
    gang(&cluster, "beside", "beside", 6, &away("web", HOST)).await;
    all_bound(&cluster, "beside-", 6).await;
    assert!(nodes_of(&cluster, "beside-").await.contains(&"n0".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn members_are_on_different_nodes_where_there_is_room_and_share_where_there_is_not() {
    let Some(cluster) = zones(&["a", "a", "b"]).await else { return };
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    // All of them would fit on one node.
    gang(&cluster, "three", "three", 3, &spread("three", HOST)).await;
    all_bound(&cluster, "three-", 3).await;
    assert_eq!(nodes_of(&cluster, "three-").await, ["n0", "n1", "n2"]);
    gang(&cluster, "apart", "apart", 3, &away("apart", HOST)).await;
    all_bound(&cluster, "apart-", 3).await;
    assert_eq!(nodes_of(&cluster, "apart-").await, ["n0", "n1", "n2"]);
    gang(&cluster, "zones", "zones", 2, &spread("zones", ZONE)).await;
    all_bound(&cluster, "zones-", 2).await;
    let nodes: BTreeSet<String> = nodes_of(&cluster, "zones-").await.into_iter().collect();
    assert!(nodes.len() == 2 && nodes.contains("n2"), "{nodes:?}");
    gang(&cluster, "five", "five", 5, &spread("five", HOST)).await;
    all_bound(&cluster, "five-", 5).await;
    assert_eq!(shares(&nodes_of(&cluster, "five-").await), [1, 2, 2]);
    // Four on each node are taken, and more on some: there is one node where as many fit, and they all go there.
    remove(&cluster, "five-").await;
    remove(&cluster, "zones-").await;
    foreign(&cluster, "full", "full", "n0", 6, "").await;
    foreign(&cluster, "fuller", "full", "n1", 6, "").await;
    gang(&cluster, "six", "six", 6, &spread("six", HOST)).await;
    all_bound(&cluster, "six-", 6).await;
    assert_eq!(shares(&nodes_of(&cluster, "six-").await), [6]);
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_that_stand_for_themselves_are_spread_one_by_one() {
    let Some(cluster) = small_cluster(3).await else { return };
    // All of them are there before the controller is: none is anywhere when they are looked at.
    for at in 0..7 {
        let one = pod(&format!("web-{at}"), 1, "app: web", "", &spread("web", HOST));
        cluster.apply(&one).await.expect("a pod");
    }
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    all_bound(&cluster, "web-", 7).await;
    assert_eq!(shares(&nodes_of(&cluster, "web-").await), [2, 2, 3]);
}
