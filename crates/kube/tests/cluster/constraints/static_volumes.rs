//! Static volumes, and nodes with attach limits. The volume controller is the real one, except where a test decides
//! when it acts.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod as AnyPod};
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams};
use muster_testkit::cluster::{Cluster, Part, Role, Setup};
use serde_json::json;

use crate::fixture::clusters::{cluster_with_nodes, kwok_cluster};
use crate::fixture::controller::Controller;
use crate::fixture::manifests::pod;
use crate::fixture::pods::{bound_with_prefix, remove_pods, until_bound};
use crate::observer::{GANG, LEAST, ObservedCluster};

const CLASS: &str = "
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: local}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
";

/// A cluster with the real volume controller.
async fn cluster(nodes: u32) -> Option<ObservedCluster> {
    let setup = Setup::bare().with(Part::ControllerManager).with(Part::Kwok);
    let cluster = cluster_with_nodes(nodes, setup).await?;
    cluster.apply(CLASS).await.expect("a class");
    Some(cluster)
}

/// A local volume of a node.
async fn create_volume(cluster: &Cluster, name: &str, node: &str, size: &str) {
    let disk = format!(
        "
apiVersion: v1
kind: PersistentVolume
metadata: {{name: {name}}}
spec:
  storageClassName: local
  capacity: {{storage: {size}}}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  local: {{path: /mnt/{name}}}
  nodeAffinity: {{required: {{nodeSelectorTerms: [{{matchExpressions: [{{key: kubernetes.io/hostname, operator: In, values: [{node}]}}]}}]}}}}
"
    );
    cluster.apply(&disk).await.expect("a volume");
}

/// A gang of pods with one GPU each, each with a claim of its own: `train-0`, ...
async fn gang(cluster: &Cluster, name: &str, count: u32) {
    for at in 0..count {
        let claim = format!(
            "
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: {name}-{at}, namespace: default}}
spec: {{storageClassName: local, accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 10Gi}}}}}}
"
        );
        cluster.apply(&claim).await.expect("a claim");
    }
    let labels = format!("{GANG}: {name}");
    let marks =
        format!("muster.sh/gang: {name}, muster.sh/gang-size: '{count}', {LEAST}: '{count}'");
    for at in 0..count {
        let uses = uses_claim(&format!("{name}-{at}"));
        let pod = pod(&format!("{name}-{at}"), 1, &labels, &marks, &uses);
        cluster.apply(&pod).await.expect("a pod");
    }
}

fn uses_claim(claim: &str) -> String {
    format!("volumes: [{{name: data, persistentVolumeClaim: {{claimName: {claim}}}}}]")
}

async fn volumes(cluster: &Cluster) -> Vec<PersistentVolume> {
    let volumes: Api<PersistentVolume> = Api::all(cluster.client(Role::Observer).await);
    volumes.list(&ListParams::default()).await.expect("volumes").items
}

/// Volumes by the claim that they are bound to or reserved for.
async fn reserved_volumes(cluster: &Cluster) -> BTreeMap<String, String> {
    let owner = |volume: &PersistentVolume| volume.spec.clone()?.claim_ref?.name;
    let all = volumes(cluster).await;
    all.iter().filter_map(|volume| Some((owner(volume)?, volume.name_any()))).collect()
}

/// Waits until all volumes are available.
async fn until_available(cluster: &Cluster) {
    let is_open = |volume: &PersistentVolume| {
        volume.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Available")
    };
    let open = async || volumes(cluster).await.iter().all(is_open).then_some(());
    cluster.until("the volumes are open", open).await;
}

/// The nodes of pods with this prefix.
async fn nodes_by_pod(cluster: &Cluster, prefix: &str) -> BTreeMap<String, String> {
    let pods: Api<AnyPod> = Api::namespaced(cluster.client(Role::Observer).await, "default");
    let all = pods.list(&ListParams::default()).await.expect("pods").items;
    let mine = all.into_iter().filter(|pod| pod.name_any().starts_with(prefix));
    mine.filter_map(|pod| Some((pod.name_any(), pod.spec?.node_name?))).collect()
}

/// Asserts that each pod of the gang `train` is on the node of its claim's volume: `n1` has the volume `d1`.
async fn assert_beside_volumes(cluster: &Cluster, count: usize) {
    let client = cluster.client(Role::Observer).await;
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client, "default");
    let places = nodes_by_pod(cluster, "train-").await;
    assert_eq!(places.len(), count);
    for (name, node) in places {
        let claim = claims.get(&name).await.expect("a claim");
        let volume = claim.spec.and_then(|spec| spec.volume_name);
        assert_eq!(volume, Some(node.replace('n', "d")), "{name} is on {node}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn gang_is_placed_on_nodes_whose_volumes_fit_its_claims() {
    let Some(cluster) = cluster(4).await else { return };
    for at in [0, 2, 3] {
        create_volume(&cluster, &format!("d{at}"), &format!("n{at}"), "20Gi").await;
    }
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    gang(&cluster, "train", 3).await;
    until_bound(&cluster, "train-", 3).await;
    let nodes: Vec<String> = nodes_by_pod(&cluster, "train-").await.into_values().collect();
    let mut sorted = nodes.clone();
    sorted.sort();
    assert_eq!(sorted, ["n0", "n2", "n3"]);
    assert_beside_volumes(&cluster, 3).await;
    let client = cluster.client(Role::Observer).await;
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client, "default");
    for claim in claims.list(&ListParams::default()).await.expect("claims") {
        let phase = claim.status.and_then(|status| status.phase);
        assert_eq!(phase.as_deref(), Some("Bound"), "a pod was bound, and its claim is not");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn gang_short_of_one_volume_binds_no_pod_and_no_volume() {
    let Some(cluster) = cluster(4).await else { return };
    create_volume(&cluster, "d0", "n0", "20Gi").await;
    create_volume(&cluster, "d1", "n1", "20Gi").await;
    // Too small for any claim.
    create_volume(&cluster, "d2", "n2", "5Gi").await;
    until_available(&cluster).await;
    let before: Vec<_> = volumes(&cluster).await.into_iter().map(|one| one.metadata).collect();
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    gang(&cluster, "train", 3).await;
    // A bound pod without a volume proves that the controller has reconciled all of them.
    cluster.apply(&pod("other", 1, "", "", "")).await.expect("a pod");
    until_bound(&cluster, "other", 1).await;
    let pods: Api<AnyPod> = Api::namespaced(cluster.client(Role::Observer).await, "default");
    cluster
        .until("its condition names what is missing", async || {
            let conditions = pods.get("train-0").await.ok()?.status?.conditions?;
            let words = "a free volume of class local with 10Gi";
            let reported = |words: &str| {
                conditions.iter().any(|one| one.message.as_deref().unwrap_or("").contains(words))
            };
            reported(words).then_some(())
        })
        .await;
    assert_eq!(bound_with_prefix(&cluster, "train-").await, 0);
    let after: Vec<_> = volumes(&cluster).await.into_iter().map(|one| one.metadata).collect();
    assert_eq!(before, after, "a volume was touched");
    // A third volume completes the gang.
    create_volume(&cluster, "d3", "n3", "10Gi").await;
    until_bound(&cluster, "train-", 3).await;
    assert_beside_volumes(&cluster, 3).await;
}

/// Binds a claim to the volume that is reserved for it, as the volume controller does.
async fn bind_claim(cluster: &Cluster, claim: &str, volume: &str) {
    let client = cluster.client(Role::Admin).await;
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client, "default");
    let patch = json!({
        "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": volume},
    });
    claims.patch(claim, &PatchParams::default(), &Patch::Merge(patch)).await.expect("bound");
}

#[tokio::test(flavor = "multi_thread")]
async fn unbound_volumes_are_released_and_kept_across_a_controller_kill() {
    // There is no volume controller: the test binds volumes.
    let Some(cluster) = kwok_cluster(3).await else { return };
    cluster.apply(CLASS).await.expect("a class");
    let all: Api<PersistentVolume> = Api::all(cluster.client(Role::Admin).await);
    for at in 0..3 {
        let name = format!("d{at}");
        create_volume(&cluster, &name, &format!("n{at}"), "10Gi").await;
        let open = Patch::Merge(json!({"status": {"phase": "Available"}}));
        all.patch_status(&name, &PatchParams::default(), &open).await.expect("open");
    }
    let controller =
        Controller::start(&cluster, &["--leader-elect=false", "--volume-binding-timeout", "5s"]);
    gang(&cluster, "train", 3).await;
    let three = async || (reserved_volumes(&cluster).await.len() == 3).then_some(());
    cluster.until("a disk is kept for each", three).await;
    for volume in volumes(&cluster).await {
        let by = volume.annotations().get("pv.kubernetes.io/bound-by-controller");
        assert_eq!(by.map(String::as_str), Some("yes"));
        let owner = volume.spec.and_then(|spec| spec.claim_ref).expect("kept");
        assert_eq!(owner.kind.as_deref(), Some("PersistentVolumeClaim"));
        assert!(owner.uid.is_some_and(|uid| !uid.is_empty()));
    }
    // No controller binds them: the gang releases them and starts over.
    cluster
        .until("it starts over", async || controller.log().contains("starts over").then_some(()))
        .await;
    assert_eq!(bound_with_prefix(&cluster, "train-").await, 0);
    cluster.until("a disk is kept for each again", three).await;
    controller.kill();
    let before = reserved_volumes(&cluster).await;
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.until("the next one has a disk kept for each", three).await;
    let now = reserved_volumes(&cluster).await;
    let is_same = |(claim, volume): (&String, &String)| now.get(claim) == Some(volume);
    assert!(before.iter().all(is_same), "{before:?} and then {now:?}");
    let (claim, volume) = now.iter().next_back().expect("three");
    for (claim, volume) in now.iter().take(2) {
        bind_claim(&cluster, claim, volume).await;
    }
    cluster.apply(&pod("other", 1, "", "", "")).await.expect("a pod");
    until_bound(&cluster, "other", 1).await;
    assert_eq!(
        bound_with_prefix(&cluster, "train-").await,
        0,
        "two of three volumes are not enough"
    );
    bind_claim(&cluster, claim, volume).await;
    until_bound(&cluster, "train-", 3).await;
    assert_beside_volumes(&cluster, 3).await;
}

/// A bound claim whose CSI volume can be attached to any node.
async fn create_attached_claim(cluster: &Cluster, name: &str) {
    let text = format!(
        "
apiVersion: v1
kind: PersistentVolume
metadata: {{name: pv-{name}}}
spec:
  storageClassName: disks
  capacity: {{storage: 1Gi}}
  accessModes: [ReadWriteOnce]
  csi: {{driver: disks.example.com, volumeHandle: {name}}}
  claimRef: {{namespace: default, name: {name}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: {name}, namespace: default}}
spec: {{storageClassName: disks, volumeName: pv-{name}, accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}
"
    );
    cluster.apply(&text).await.expect("a claim");
}

#[tokio::test(flavor = "multi_thread")]
async fn attach_limit_of_one_admits_one_pod_with_a_volume() {
    let Some(cluster) = cluster(1).await else { return };
    cluster
        .apply("{apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {name: n0}, spec: {drivers: [{name: disks.example.com, nodeID: n0, allocatable: {count: 1}}]}}")
        .await
        .expect("a CSINode");
    create_attached_claim(&cluster, "one").await;
    create_attached_claim(&cluster, "two").await;
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply(&pod("one", 1, "", "", &uses_claim("one"))).await.expect("a pod");
    until_bound(&cluster, "one", 1).await;
    cluster.apply(&pod("two", 1, "", "", &uses_claim("two"))).await.expect("a pod");
    // A pod that shares an attached volume needs no further attachment.
    cluster.apply(&pod("three", 1, "", "", &uses_claim("one"))).await.expect("a pod");
    until_bound(&cluster, "three", 1).await;
    let pods: Api<AnyPod> = Api::namespaced(cluster.client(Role::Observer).await, "default");
    cluster
        .until("its condition names the reason", async || {
            let conditions = pods.get("two").await.ok()?.status?.conditions?;
            let reported = |words: &str| {
                conditions.iter().any(|one| one.message.as_deref().unwrap_or("").contains(words))
            };
            reported("attach their volumes of disks.example.com").then_some(())
        })
        .await;
    assert_eq!(bound_with_prefix(&cluster, "two").await, 0);
    remove_pods(&cluster, "one").await;
    remove_pods(&cluster, "three").await;
    until_bound(&cluster, "two", 1).await;
}
