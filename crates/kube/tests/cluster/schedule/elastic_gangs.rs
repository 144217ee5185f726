//! Elastic gangs: they start with what fits, grow into free room, shrink for others, and never go below their minimum.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::Api;
use muster_testkit::cluster::{Cluster, Role, Setup};

use crate::fixture::clusters::{cluster_without_kubelets, kwok_cluster};
use crate::fixture::controller::Controller;
use crate::fixture::deny_policy::{deny_updates_unless, remove_deny_policy};
use crate::fixture::manifests::{QUEUE_WITH_PRIORITIES, gang, node, node_without_kubelet};
use crate::fixture::objects::{gang_status, placement_of, until_event, until_gang_status};
use crate::fixture::pods::{
    finish_termination, node_of, pods_with_prefix, terminating_pods, until_bound,
};

/// A gang of `min` to `max` workers with this many GPUs each.
fn elastic(name: &str, (min, max): (u32, u32), gpus: u32, more: &str) -> String {
    gang(name, &format!("min: {min}, max: {max}"), min, gpus, more)
}

/// A gang of a fixed number of workers.
fn rigid(name: &str, members: u32, gpus: u32, more: &str) -> String {
    gang(name, &format!("min: {members}"), members, gpus, more)
}

/// The indexes of a gang's bound workers.
async fn indexes(cluster: &Cluster, gang: &str) -> Vec<u32> {
    let pods = pods_with_prefix(cluster, &format!("{gang}-worker-")).await;
    let bound = pods.iter().filter(|pod| node_of(pod).is_some());
    let mut found: Vec<u32> = bound
        .filter_map(|pod| pod.labels().get("muster.sh/index").and_then(|at| at.parse().ok()))
        .collect();
    found.sort_unstable();
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn elastic_gang_grows_and_shrinks_but_never_below_its_minimum() {
    let Some(cluster) = kwok_cluster(1).await else { return };
    cluster.apply(QUEUE_WITH_PRIORITIES).await.expect("a queue");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply(&elastic("train", (2, 4), 4, "")).await.expect("a gang");
    until_bound(&cluster, "train", 2).await;
    assert_eq!(indexes(&cluster, "train").await, [0, 1]);
    until_gang_status(&cluster, "train", |status| status["members"]["ready"] == 2).await;
    // The gang grows into a new node.
    cluster.apply(&node("n1")).await.expect("a node");
    until_bound(&cluster, "train", 4).await;
    until_event(&cluster, "train", "Growing", "to 4 members").await;
    until_gang_status(&cluster, "train", |status| {
        status["phase"] == "Running"
            && status["members"]["ready"] == 4
            && status["message"] == "running with 4 members"
            && status["placement"].as_array().is_some_and(|all| all.len() == 2)
    })
    .await;
    // A gang of higher priority needs some of it: the last members are evicted.
    for (at, name) in ["urgent", "pressing"].into_iter().enumerate() {
        cluster.apply(&rigid(name, 1, 4, "priority: 100")).await.expect("a gang");
        until_bound(&cluster, name, 1).await;
        let left: Vec<u32> = (0..3 - at as u32).collect();
        assert_eq!(indexes(&cluster, "train").await, left);
        let why = format!("to make room for default/{name}");
        until_event(&cluster, "train", "Shrinking", &why).await;
    }
    // The gang is at its minimum: a gang without a higher priority waits, and so do the evicted members.
    cluster.apply(&rigid("later", 1, 4, "")).await.expect("a gang");
    until_gang_status(&cluster, "later", |status| status["phase"] == "Waiting").await;
    assert_eq!(indexes(&cluster, "train").await, [0, 1]);
    cluster
        .until("all four are there, two of them nowhere", async || {
            (pods_with_prefix(&cluster, "train").await.len() == 4).then_some(())
        })
        .await;
    assert_eq!(gang_status(&cluster, "train").await["phase"], "Running");
}

#[tokio::test(flavor = "multi_thread")]
async fn lowest_indexes_are_bound_first_and_evicted_last() {
    let Some(cluster) = kwok_cluster(1).await else { return };
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply(&elastic("train", (2, 12), 1, "")).await.expect("a gang");
    until_bound(&cluster, "train", 8).await;
    assert_eq!(indexes(&cluster, "train").await, [0, 1, 2, 3, 4, 5, 6, 7]);
    cluster.apply(&rigid("other", 1, 5, "")).await.expect("a gang");
    until_bound(&cluster, "other", 1).await;
    assert_eq!(indexes(&cluster, "train").await, [0, 1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn controller_killed_while_a_gang_grows_finishes_the_growth() {
    let Some(cluster) = cluster_without_kubelets(1, Setup::bare()).await else { return };
    let controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply(&elastic("train", (2, 4), 4, "")).await.expect("a gang");
    until_bound(&cluster, "train", 2).await;
    until_gang_status(&cluster, "train", |status| status["phase"] == "Running").await;
    // The placement of the growth is refused, so that no new member may be bound.
    let unless = "object.status.placement.size() < 2";
    deny_updates_unless(&cluster, ("muster.sh", "gangs/status"), "train", unless).await;
    tokio::time::sleep(Duration::from_secs(1)).await; // until every part of the server knows the policy
    cluster.apply(&node_without_kubelet("n1")).await.expect("a node");
    until_event(&cluster, "train", "Growing", "from 2 to 4 members").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(indexes(&cluster, "train").await, [0, 1], "bound before it was written down");
    controller.kill();
    remove_deny_policy(&cluster).await;
    let controller = Controller::start(&cluster, &["--leader-elect=false"]);
    until_bound(&cluster, "train", 4).await;
    // The same at a later instant.
    controller.kill();
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply(&rigid("rival", 1, 4, "")).await.expect("a gang");
    cluster
        .until("one member is evicted", async || {
            (terminating_pods(&cluster, "train").await.len() == 1).then_some(())
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn controller_killed_while_a_gang_shrinks_finishes_the_shrink() {
    let Some(cluster) = cluster_without_kubelets(4, Setup::bare()).await else { return };
    cluster.apply(QUEUE_WITH_PRIORITIES).await.expect("a queue");
    let controller = Controller::start(&cluster, &["--leader-elect=false"]);
    let train = elastic("train", (2, 4), 8, "disruption: {grace: 40s}");
    cluster.apply(&train).await.expect("a gang");
    until_bound(&cluster, "train", 4).await;
    cluster.apply(&rigid("rival", 2, 8, "priority: 100")).await.expect("a gang");
    let evicted_pods = cluster
        .until("two members are evicted", async || {
            Some(terminating_pods(&cluster, "train").await).filter(|leaving| leaving.len() == 2)
        })
        .await;
    assert!(evicted_pods.iter().all(|pod| pod.metadata.deletion_grace_period_seconds == Some(40)));
    controller.kill();
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    // Their grace period holds under the next leader: the first to end makes room for no pod.
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Observer).await, "default");
    finish_termination(&cluster, &evicted_pods[..1]).await;
    cluster
        .until("the one that is gone is made again", async || {
            let pod = pods.get_opt(&evicted_pods[0].name_any()).await.ok()??;
            (pod.metadata.uid != evicted_pods[0].metadata.uid).then_some(())
        })
        .await;
    until_gang_status(&cluster, "rival", |status| status["phase"] == "Provisioning").await;
    assert_eq!(indexes(&cluster, "train").await.len(), 3);
    finish_termination(&cluster, &evicted_pods[1..]).await;
    until_bound(&cluster, "rival", 2).await;
    until_bound(&cluster, "train", 2).await;
    until_gang_status(&cluster, "train", |status| status["members"]["ready"] == 2).await;
    assert_eq!(placement_of(&cluster, "train").await.values().sum::<i64>(), 2);
}
