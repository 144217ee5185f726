//! The main use: nodes for all of a job, then all of its pods, or none.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams};
use muster_kube::objects::NodeClaim;
use muster_testkit::cluster::{Cluster, Role};
use serde_json::json;

use crate::fixture::clusters::karpenter_cluster;
use crate::fixture::controller::Controller;
use crate::fixture::manifests::{POOL, job};
use crate::fixture::objects::{until_event, until_node_claims};
use crate::fixture::pods::bound_pods;
use crate::observer::{ObservedCluster, ready_since};

#[tokio::test(flavor = "multi_thread")]
async fn eight_nodes_are_bought_together_and_eight_pods_start_together() {
    let Some(cluster) = karpenter_cluster().await else { return };
    cluster.apply(POOL).await.expect("a pool");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply_as(Role::User, &job("train", 8, 8)).await.expect("a job");
    let claims: Api<NodeClaim> = Api::all(cluster.client(Role::Observer).await);
    until_node_claims(&cluster, 8).await;
    cluster
        .until("all eight pods are bound", async || (bound_pods(&cluster).await == 8).then_some(()))
        .await;
    eprintln!("bound within {:?}", cluster.observer().window());
    // Karpenter writes the condition a moment after it has registered the node.
    cluster
        .until("every claim is registered", async || {
            let all = claims.list(&ListParams::default()).await.ok()?.items;
            (all.len() == 8 && all.iter().all(NodeClaim::is_registered)).then_some(())
        })
        .await;
    let (ready, bound) = (last_ready(&cluster).await, first_bound(&cluster).await);
    assert!(bound >= ready, "the first was bound at {bound}, the last node was ready at {ready}");
}

/// When the last node became ready, by its condition.
async fn last_ready(cluster: &Cluster) -> Timestamp {
    let nodes: Api<Node> = Api::all(cluster.client(Role::Observer).await);
    let nodes = nodes.list(&ListParams::default()).await.expect("nodes");
    assert_eq!(nodes.items.len(), 8);
    nodes.iter().filter_map(ready_since).max().expect("a node")
}

/// When the first pod was bound, by its condition.
async fn first_bound(cluster: &Cluster) -> Timestamp {
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Observer).await, "default");
    let pods = pods.list(&ListParams::default()).await.expect("pods");
    let bound = pods.iter().filter_map(|pod| {
        let conditions = pod.status.as_ref()?.conditions.as_ref()?;
        let scheduled = conditions.iter().find(|one| one.type_ == "PodScheduled");
        Some(scheduled.filter(|one| one.status == "True")?.last_transition_time.as_ref()?.0)
    });
    bound.min().expect("a pod")
}

/// Keeps the first node that joins from ever being ready.
pub(crate) async fn keep_first_node_unready(cluster: &Cluster) -> String {
    let nodes: Api<Node> = Api::all(cluster.client(Role::Admin).await);
    let first = cluster
        .until("a node joins", async || {
            nodes.list(&ListParams::default()).await.ok()?.items.into_iter().next()
        })
        .await;
    let name = first.name_any();
    let mut taints = first.spec.and_then(|spec| spec.taints).unwrap_or_default();
    taints.push(
        serde_json::from_value(json!({"key": "readiness.k8s.io/spoiled", "effect": "NoSchedule"}))
            .expect("a taint"),
    );
    let patch = Patch::Merge(json!({"spec": {"taints": taints}}));
    nodes.patch(&name, &PatchParams::default(), &patch).await.expect("tainted");
    name
}

/// Eight pods, and one node that never gets ready, under a controller with these settings: no pod is bound to it, no
/// pod is bound before it was released, and all eight start in the end.
async fn one_node_never_gets_ready(settings: &[&str]) -> Option<ObservedCluster> {
    let cluster = karpenter_cluster().await?;
    // Nodes that take longer than ten seconds to show their GPUs are replaced.
    let pool = POOL.replace(
        "idleAfter: 10s",
        "idleAfter: 10s\n  timeouts: {launch: 1m, register: 1m, gpus: 10s}",
    );
    cluster.apply(&pool).await.expect("a pool");
    let _controller = Controller::start(&cluster, &[&["--leader-elect=false"], settings].concat());
    cluster.apply_as(Role::User, &job("train", 8, 8)).await.expect("a job");
    let spoiled = keep_first_node_unready(&cluster).await;
    cluster
        .until("all eight pods are bound", async || (bound_pods(&cluster).await == 8).then_some(()))
        .await;
    let nodes: Api<Node> = Api::all(cluster.client(Role::Observer).await);
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Observer).await, "default");
    for pod in pods.list(&ListParams::default()).await.expect("pods") {
        let node = pod.spec.and_then(|spec| spec.node_name);
        assert_ne!(
            node.as_deref(),
            Some(&*spoiled),
            "a pod was bound to the node that was never ready"
        );
    }
    cluster
        .until("the node that was never ready is released", async || {
            nodes.get_opt(&spoiled).await.ok()?.is_none().then_some(())
        })
        .await;
    cluster.assert_promises_kept().await;
    let observer = cluster.observer();
    let (returned, bound) = (observer.returned(&spoiled), observer.first_bound());
    assert!(returned.is_some() && returned < bound, "a pod was bound before it was released");
    Some(cluster)
}

#[tokio::test(flavor = "multi_thread")]
async fn node_that_never_gets_ready_leaves_no_gang_partial() {
    one_node_never_gets_ready(&[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn order_is_rolled_back_whole_when_claims_may_not_be_replaced() {
    let Some(cluster) = one_node_never_gets_ready(&["--set", "top-ups=0"]).await else { return };
    until_event(&cluster, "train.job", "OrderRolledBack", "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stockout_in_one_pool_moves_the_whole_gang_to_another() {
    let Some(cluster) = karpenter_cluster().await else { return };
    // A missing node class looks like a stockout: its claims disappear without an error.
    let cheap = POOL
        .replace("{name: gpu}", "{name: cheap}")
        .replace("name: default}}}", "name: nowhere}}}")
        .replace("price: 98", "price: 50");
    cluster.apply(&cheap).await.expect("a pool");
    cluster.apply(POOL).await.expect("a pool");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply_as(Role::User, &job("train", 4, 8)).await.expect("a job");
    cluster
        .until("all four pods are bound", async || (bound_pods(&cluster).await == 4).then_some(()))
        .await;
    let claims: Api<NodeClaim> = Api::all(cluster.client(Role::Observer).await);
    let all = claims.list(&ListParams::default()).await.expect("claims").items;
    let pools: Vec<&str> = all
        .iter()
        .filter_map(|claim| claim.labels().get("muster.sh/pool"))
        .map(|pool| &**pool)
        .collect();
    assert_eq!(pools, ["gpu"; 4]);
}
