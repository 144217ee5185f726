//! Volumes that a provisioner creates, immediately or for the first consumer, with the test as the provisioner.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams};
use muster_testkit::cluster::{Cluster, Role};
use serde_json::json;

use super::zoned_cluster::{
    ZONE, cluster_with_zones, gang_of_app, nodes_of, remove_with_prefix, until_gang_reports,
    until_pod_reports,
};
use crate::fixture::controller::Controller;
use crate::fixture::manifests::pod;
use crate::fixture::pods::{bound_with_prefix, until_bound};
use crate::observer::{GANG, LEAST};

const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// A claim for 1Gi in a storage class.
fn claim(name: &str, class: &str, mode: &str) -> String {
    format!(
        "
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: {name}, namespace: default}}
spec: {{storageClassName: {class}, accessModes: [{mode}], resources: {{requests: {{storage: 1Gi}}}}}}
"
    )
}

fn class(name: &str, mode: &str) -> String {
    format!(
        "
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {{name: {name}}}
provisioner: example.com/disks
volumeBindingMode: {mode}
"
    )
}

fn uses_claim(claim: &str) -> String {
    format!("volumes: [{{name: data, persistentVolumeClaim: {{claimName: {claim}}}}}]")
}

/// Binds a claim to a new volume that only nodes of one zone reach, as a provisioner and the volume controller would.
async fn bind_to_new_volume(cluster: &Cluster, claim: &str, zone: &str) {
    let client = cluster.client(Role::Admin).await;
    let volume: PersistentVolume = serde_json::from_value(json!({
        "metadata": {"name": format!("pv-{claim}")},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": "example.com", "volumeHandle": claim},
            "claimRef": {"namespace": "default", "name": claim},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]},
            ]}},
        },
    }))
    .expect("a volume");
    Api::<PersistentVolume>::all(client.clone())
        .create(&Default::default(), &volume)
        .await
        .expect("a volume");
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client, "default");
    let patch = json!({
        "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": format!("pv-{claim}")},
    });
    claims.patch(claim, &PatchParams::default(), &Patch::Merge(patch)).await.expect("bound");
}

/// The selected node of each claim.
async fn selected_nodes(cluster: &Cluster) -> BTreeMap<String, String> {
    let claims: Api<PersistentVolumeClaim> =
        Api::namespaced(cluster.client(Role::Observer).await, "default");
    let all = claims.list(&ListParams::default()).await.expect("claims");
    let nodes = |claim: &PersistentVolumeClaim| claim.annotations().get(SELECTED_NODE).cloned();
    all.iter().filter_map(|claim| Some((claim.name_any(), nodes(claim)?))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_are_placed_where_their_bound_volumes_are() {
    let Some(cluster) = cluster_with_zones(&["a", "b"]).await else { return };
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply(&class("now", "Immediate")).await.expect("a class");
    for (name, mode) in [("data", "ReadWriteOnce"), ("single", "ReadWriteOncePod")] {
        cluster.apply(&claim(name, "now", mode)).await.expect("a claim");
    }
    gang_of_app(&cluster, "read", "read", 2, &uses_claim("data")).await;
    until_gang_reports(&cluster, "read", "waits: volume claim data is not bound yet").await;
    bind_to_new_volume(&cluster, "data", "b").await;
    until_bound(&cluster, "read-", 2).await;
    assert_eq!(nodes_of(&cluster, "read-").await, ["n1", "n1"]);
    // Of two pods with a ReadWriteOncePod claim, the second waits.
    bind_to_new_volume(&cluster, "single", "a").await;
    cluster.apply(&pod("first", 1, "", "", &uses_claim("single"))).await.expect("a pod");
    until_bound(&cluster, "first", 1).await;
    assert_eq!(nodes_of(&cluster, "first").await, ["n0"]);
    cluster.apply(&pod("second", 1, "", "", &uses_claim("single"))).await.expect("a pod");
    until_pod_reports(&cluster, "second", "is ReadWriteOncePod").await;
    remove_with_prefix(&cluster, "first").await;
    until_bound(&cluster, "second", 1).await;
    // A missing claim is waited for, and an unsupported field is reported.
    cluster.apply(&pod("early", 1, "", "", &uses_claim("missing"))).await.expect("a pod");
    until_pod_reports(&cluster, "early", "volume claim missing does not exist").await;
    let devices = "resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]";
    gang_of_app(&cluster, "devices", "devices", 1, devices).await;
    until_gang_reports(&cluster, "devices", "waits: devices by ResourceClaims are not supported")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_pod_is_bound_before_all_volumes_of_its_gang_exist() {
    let Some(cluster) = cluster_with_zones(&["a", "b"]).await else { return };
    cluster.apply(&class("late", "WaitForFirstConsumer")).await.expect("a class");
    for at in 0..2 {
        cluster
            .apply(&claim(&format!("disk-{at}"), "late", "ReadWriteOnce"))
            .await
            .expect("a claim");
    }
    // Five GPUs each, so that they cannot share a node.
    let controller =
        Controller::start(&cluster, &["--leader-elect=false", "--volume-binding-timeout", "12s"]);
    for at in 0..2 {
        let marks = format!("muster.sh/gang: train, muster.sh/gang-size: '2', {LEAST}: '2'");
        let labels = format!("{GANG}: train");
        let pod =
            pod(&format!("train-{at}"), 5, &labels, &marks, &uses_claim(&format!("disk-{at}")));
        cluster.apply(&pod).await.expect("a pod");
    }
    let both = async || (selected_nodes(&cluster).await.len() == 2).then_some(());
    cluster.until("both claims have a selected node", both).await;
    until_gang_reports(&cluster, "train", "waits for its volumes: disk-0, disk-1").await;
    // No provisioner creates them: the gang releases its seats, removes the selected nodes and retries.
    cluster
        .until("it starts over", async || controller.log().contains("starts over").then_some(()))
        .await;
    assert_eq!(bound_with_prefix(&cluster, "train-").await, 0);
    // A controller killed in between continues where it was.
    controller.kill();
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.until("both claims have a selected node again", both).await;
    let nodes = selected_nodes(&cluster).await;
    let zone = |node: &str| if node == "n0" { "a" } else { "b" };
    bind_to_new_volume(&cluster, "disk-0", zone(&nodes["disk-0"])).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(
        bound_with_prefix(&cluster, "train-").await,
        0,
        "one of two volumes is no reason to start"
    );
    bind_to_new_volume(&cluster, "disk-1", zone(&nodes["disk-1"])).await;
    until_bound(&cluster, "train-", 2).await;
    for at in 0..2 {
        let node = nodes_of(&cluster, &format!("train-{at}")).await;
        assert_eq!(node, [nodes[&format!("disk-{at}")].clone()]);
    }
}
