//! A controller that starts while a member of a gang is missing.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject};
use kube::core::GroupVersionKind;
use muster_testkit::cluster::{Role, Setup};

use crate::fixture::clusters::cluster_without_kubelets;
use crate::fixture::controller::Controller;
use crate::fixture::manifests::{gang, pod};
use crate::fixture::objects::until_gang_status;
use crate::fixture::pods::{bound_with_prefix, pods_with_prefix, until_bound};

/// A member with four GPUs of a gang of two that only annotations describe.
fn member(at: u32) -> String {
    let marks = "muster.sh/gang: pair, muster.sh/gang-size: '2'";
    pod(&format!("pair-{at}"), 4, "", marks, "")
}

#[tokio::test(flavor = "multi_thread")]
async fn gang_without_a_member_keeps_its_seats_under_the_next_leader() {
    let Some(cluster) = cluster_without_kubelets(1, Setup::bare()).await else { return };
    cluster.allow_violation("default/pair was left in part");
    let controller = Controller::start(&cluster, &["--leader-elect=false"]);
    for at in 0..2 {
        cluster.apply(&member(at)).await.expect("a pod");
    }
    until_bound(&cluster, "pair", 2).await;
    controller.kill();
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Admin).await, "default");
    pods.delete("pair-1", &DeleteParams::default().grace_period(0)).await.expect("gone");
    // This gang does not fit: half of the node is used, the other half is held.
    cluster.apply(&gang("rival", "min: 1", 1, 8, "")).await.expect("a gang");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    until_gang_status(&cluster, "rival", |status| status["phase"] == "Waiting").await;
    assert_eq!(bound_with_prefix(&cluster, "rival").await, 0);
    cluster.apply(&member(1)).await.expect("a pod");
    until_bound(&cluster, "pair", 2).await;
    assert_eq!(pods_with_prefix(&cluster, "pair").await.len(), 2);
}

/// A queue of the namespace `default`.
const QUEUE: &str = "
apiVersion: muster.sh/v1alpha1
kind: Queue
metadata: {name: team}
spec: {namespaces: {names: [default]}}
";

#[tokio::test(flavor = "multi_thread")]
async fn gang_of_a_deleted_queue_keeps_its_seats_under_the_next_leader() {
    let Some(cluster) = cluster_without_kubelets(1, Setup::bare()).await else { return };
    cluster.apply(QUEUE).await.expect("a queue");
    let controller = Controller::start(&cluster, &["--leader-elect=false"]);
    let of_team =
        |at: u32| member(at).replace("muster.sh/gang:", "muster.sh/queue: team, muster.sh/gang:");
    for at in 0..2 {
        cluster.apply(&of_team(at)).await.expect("a pod");
    }
    until_bound(&cluster, "pair", 2).await;
    controller.kill();
    let client = cluster.client(Role::Admin).await;
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("muster.sh", "v1alpha1", "Queue"));
    let queues: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    queues.delete("team", &DeleteParams::default()).await.expect("gone");
    let pods: Api<Pod> = Api::namespaced(client, "default");
    pods.delete("pair-1", &DeleteParams::default().grace_period(0)).await.expect("gone");
    cluster.apply(&gang("rival", "min: 1", 1, 8, "")).await.expect("a gang");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    until_gang_status(&cluster, "rival", |status| status["phase"] == "Waiting").await;
    assert_eq!(bound_with_prefix(&cluster, "rival").await, 0);
    // Its seat is held for its replacement. The deleted queue admits no other gang.
    cluster.apply(&of_team(1)).await.expect("a pod");
    until_bound(&cluster, "pair", 2).await;
}
