//! What pods of others take, also when that changes while they run.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, Patch, PatchParams};
use muster_testkit::cluster::{Role, Setup};
use serde_json::json;

use crate::controller::Controller;
use crate::gates::until_bound;
use crate::stage::{bound_of, still, until_told};
use crate::words::gang;

/// Somebody else's, on the only node there is.
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
async fn nobody_is_put_where_a_pod_was_made_larger_while_it_ran() {
    let Some(cluster) = still(1, Setup::bare()).await else { return };
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
    // Half a core is left of the node's 64.
    resize("62500m").await;
    cluster.apply(&gang("rival", "min: 1", 1, 1, "")).await.expect("a gang");
    until_told(&cluster, "rival", |status| {
        status["phase"] == "Waiting" || status["phase"] == "Infeasible"
    })
    .await;
    assert_eq!(bound_of(&cluster, "rival").await, 0);
    resize("1").await;
    until_bound(&cluster, "rival", 1).await;
}
