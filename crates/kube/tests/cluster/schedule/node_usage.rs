//! Requests of foreign pods, also when these are resized in place.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, Patch, PatchParams};
use muster_testkit::cluster::{Role, Setup};
use serde_json::json;

use crate::fixture::clusters::cluster_without_kubelets;
use crate::fixture::controller::Controller;
use crate::fixture::manifests::gang;
use crate::fixture::objects::until_gang_status;
use crate::fixture::pods::{bound_with_prefix, until_bound};

/// A pod of another scheduler, on the only node.
const STRANGER: &str = "
apiVersion: v1
kind: Pod
metadata: {name: stranger, namespace: default}
spec:
  schedulerName: other
  nodeName: n0
  containers: [{name: worker, image: none, resources: {requests: {cpu: 1}}}]
";

#[tokio::test(flavor = "multi_thread")]
async fn pod_resized_in_place_takes_its_new_size_from_the_node() {
    let Some(cluster) = cluster_without_kubelets(1, Setup::bare()).await else { return };
    cluster.apply(STRANGER).await.expect("a pod");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply(&gang("first", "min: 1", 1, 1, "")).await.expect("a gang");
    until_bound(&cluster, "first", 1).await;
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Admin).await, "default");
    let resize = async |cpu: &str| {
        let containers = json!([{"name": "worker", "resources": {"requests": {"cpu": cpu}}}]);
        let patch = Patch::Strategic(json!({"spec": {"containers": containers}}));
        let params = PatchParams::default();
        pods.patch_subresource("resize", "stranger", &params, &patch).await.expect("resized");
    };
    // Half a core is free of the node's 64, beside the first gang.
    resize("62500m").await;
    cluster.apply(&gang("rival", "min: 1", 1, 1, "")).await.expect("a gang");
    until_gang_status(&cluster, "rival", |status| {
        status["phase"] == "Waiting" || status["phase"] == "Infeasible"
    })
    .await;
    assert_eq!(bound_with_prefix(&cluster, "rival").await, 0);
    resize("1").await;
    until_bound(&cluster, "rival", 1).await;
}
