//! Bought nodes are used when they show all resources of their offering, and stay while pods use them.

use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::{ResourceExt, core::GroupVersionKind};
use muster_kube::objects::NodeClaim;
use muster_testkit::cluster::{Cluster, Role};
use serde_json::json;

use crate::fixture::clusters::karpenter_cluster;
use crate::fixture::controller::Controller;
use crate::fixture::leftovers::until_no_leftovers;
use crate::fixture::manifests::{POOL, gang, job};
use crate::fixture::objects::{until_gang_status, until_node_claims};
use crate::fixture::pods::bound_pods;

/// Names and UIDs of all pods.
async fn pods(cluster: &Cluster) -> Vec<(String, Option<String>)> {
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Observer).await, "default");
    let all = pods.list(&ListParams::default()).await.expect("pods").items;
    all.into_iter().map(|pod| (pod.name_any(), pod.metadata.uid)).collect()
}

/// Waits until the garbage collector has removed the objects of a deleted pool.
async fn until_garbage_collected(cluster: &Cluster) {
    let client = cluster.client(Role::Observer).await;
    let witnesses: Api<ConfigMap> = Api::namespaced(client, "default");
    cluster
        .until("what belonged to the pool is gone", async || {
            matches!(witnesses.get_opt("witness").await, Ok(None)).then_some(())
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_pool_keeps_its_nodes_until_the_gang_on_them_ends() {
    let Some(cluster) = karpenter_cluster().await else { return };
    // A pool name that does not fit into a label is refused.
    let long = POOL.replace("{name: gpu}", &format!("{{name: {}}}", "p".repeat(64)));
    let refused = cluster.apply(&long).await.expect_err("its claims could never be made");
    assert!(format!("{refused:?}").contains("63 characters"), "{refused:?}");
    cluster.apply(POOL).await.expect("a pool");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply_as(Role::Admin, &gang("train", "min: 2", 2, 8, "")).await.expect("a gang");
    cluster.until("it runs", async || (bound_pods(&cluster).await == 2).then_some(())).await;
    let (before, claims) = (pods(&cluster).await, until_node_claims(&cluster, 2).await);
    // An object owned by the pool shows when garbage collection is done.
    let client = cluster.client(Role::Admin).await;
    let kind = |kind| ApiResource::from_gvk(&GroupVersionKind::gvk("muster.sh", "v1alpha1", kind));
    let pools: Api<DynamicObject> = Api::all_with(client.clone(), &kind("Pool"));
    let uid = pools.get("gpu").await.expect("a pool").metadata.uid.unwrap_or_default();
    let witness = format!(
        "
apiVersion: v1
kind: ConfigMap
metadata:
  name: witness
  namespace: default
  ownerReferences: [{{apiVersion: muster.sh/v1alpha1, kind: Pool, name: gpu, uid: {uid}}}]
"
    );
    cluster.apply(&witness).await.expect("a witness");
    pools.delete("gpu", &DeleteParams::default()).await.expect("it goes");
    until_garbage_collected(&cluster).await;
    let after: Api<NodeClaim> = Api::all(cluster.client(Role::Observer).await);
    let after = after.list(&ListParams::default()).await.expect("claims").items;
    let stays = |claim: &&NodeClaim| claim.metadata.deletion_timestamp.is_none();
    assert_eq!(after.iter().filter(stays).count(), claims.len(), "nodes were taken away under it");
    assert_eq!(pods(&cluster).await, before);
    let gangs: Api<DynamicObject> = Api::namespaced_with(client, "default", &kind("Gang"));
    gangs.delete("train", &DeleteParams::default()).await.expect("it goes");
    until_no_leftovers(&cluster).await;
}

/// Network adapters, which a device plugin shows some time after the node has joined.
const FABRIC: &str = "example.com/fabric";

/// The nodes that are ready with all of their GPUs.
async fn ready_nodes(cluster: &Cluster) -> Vec<String> {
    let nodes: Api<Node> = Api::all(cluster.client(Role::Observer).await);
    let all = nodes.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default();
    let is_ready = |node: &&Node| {
        let status = node.status.clone().unwrap_or_default();
        let gpus = status.allocatable.unwrap_or_default();
        let mut conditions = status.conditions.unwrap_or_default().into_iter();
        gpus.get("nvidia.com/gpu").is_some_and(|gpus| gpus.0 == "8")
            && conditions.any(|one| one.type_ == "Ready" && one.status == "True")
    };
    all.iter().filter(is_ready).map(ResourceExt::name_any).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn node_gets_no_pod_before_it_shows_its_network_adapters() {
    let Some(cluster) = karpenter_cluster().await else { return };
    let pool = POOL
        .replace("memory: 1900Gi}", &format!("memory: 1900Gi, {FABRIC}: 4}}"))
        .replace("name: default}", &format!("name: default}}, resourcesNotRequested: [{FABRIC}]"));
    cluster.apply(&pool).await.expect("a pool");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    let wants = format!("nvidia.com/gpu: 8, {FABRIC}: 4}}");
    let job = job("train", 2, 8).replace("nvidia.com/gpu: 8}", &wants);
    cluster.apply_as(Role::User, &job).await.expect("a job");
    until_node_claims(&cluster, 2).await;
    let ready = cluster
        .until("both nodes are ready with their GPUs", async || {
            Some(ready_nodes(&cluster).await).filter(|ready| ready.len() == 2)
        })
        .await;
    let nodes: Api<Node> = Api::all(cluster.client(Role::Admin).await);
    for (at, name) in ready.iter().enumerate() {
        until_gang_status(&cluster, "train.job", |status| {
            status["phase"] == "Provisioning" && status["members"]["ready"] == at
        })
        .await;
        assert_eq!(bound_pods(&cluster).await, 0, "{at} of 2 show their adapters");
        let shown = json!({"status": {"capacity": {FABRIC: "4"}, "allocatable": {FABRIC: "4"}}});
        let params = PatchParams::default();
        nodes.patch_status(name, &params, &Patch::Merge(shown)).await.expect("shown");
    }
    cluster.until("both are bound", async || (bound_pods(&cluster).await == 2).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_demand_pool_without_capacity_type_buys_no_spot_nodes() {
    let Some(cluster) = karpenter_cluster().await else { return };
    let unsaid = POOL.replace(" capacityType: on-demand,", "");
    assert!(!unsaid.contains("capacityType"));
    cluster.apply(&unsaid).await.expect("a pool");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply_as(Role::Admin, &gang("train", "min: 2", 2, 8, "")).await.expect("a gang");
    cluster.until("it runs", async || (bound_pods(&cluster).await == 2).then_some(())).await;
    let nodes: Api<Node> = Api::all(cluster.client(Role::Observer).await);
    let all = nodes.list(&ListParams::default()).await.expect("nodes").items;
    let paid = |node: &Node| node.labels().get("karpenter.sh/capacity-type").cloned();
    let paid: Vec<Option<String>> = all.iter().map(paid).collect();
    assert_eq!(paid, [Some("on-demand".to_owned()), Some("on-demand".to_owned())]);
    // The claim requires the capacity type by name, and its offering annotation names what was bought.
    for claim in until_node_claims(&cluster, 2).await {
        let claim = serde_json::to_value(&claim).expect("an object");
        let offering = claim.pointer("/metadata/annotations/muster.sh~1offering");
        assert!(
            offering
                .is_some_and(|name| name.as_str().is_some_and(|name| name.ends_with("/on-demand"))),
            "{claim}"
        );
    }
}
