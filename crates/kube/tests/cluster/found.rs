//! What a controller finds when it begins: gangs of which somebody is missing at that very moment.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject};
use kube::core::GroupVersionKind;
use muster_testkit::cluster::{Role, Setup};

use crate::controller::Controller;
use crate::gates::{pods_of, until_bound};
use crate::stage::{bound_of, still, until_told};
use crate::words::{gang, pod};

/// A member with four GPUs of a gang of two that says so on its pods alone.
fn member(at: u32) -> String {
    let marks = "muster.sh/gang: pair, muster.sh/gang-size: '2'";
    pod(&format!("pair-{at}"), 4, "", marks, "")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gang_that_lacks_a_member_keeps_what_it_has_when_somebody_else_leads() {
    let Some(cluster) = still(1, Setup::bare()).await else { return };
    cluster.excuse("default/pair was left in part");
    let controller = Controller::start(&cluster, &["--leader-elect=false"]);
    for at in 0..2 {
        cluster.apply(&member(at)).await.expect("a pod");
    }
    until_bound(&cluster, "pair", 2).await;
    controller.kill();
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Admin).await, "default");
    pods.delete("pair-1", &DeleteParams::default().grace_period(0)).await.expect("gone");
    // There is no room for this one: half of the node is taken, the other half is kept.
    cluster.apply(&gang("rival", "min: 1", 1, 8, "")).await.expect("a gang");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    until_told(&cluster, "rival", |status| status["phase"] == "Waiting").await;
    assert_eq!(bound_of(&cluster, "rival").await, 0);
    cluster.apply(&member(1)).await.expect("a pod");
    until_bound(&cluster, "pair", 2).await;
    assert_eq!(pods_of(&cluster, "pair").await.len(), 2);
}

/// A queue of its own for those who want one.
const QUEUE: &str = "
apiVersion: muster.sh/v1alpha1
kind: Queue
metadata: {name: team}
spec: {namespaces: {names: [default]}}
";

#[tokio::test(flavor = "multi_thread")]
async fn a_gang_whose_queue_was_deleted_goes_on_as_a_gang_when_somebody_else_leads() {
    let Some(cluster) = still(1, Setup::bare()).await else { return };
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
    until_told(&cluster, "rival", |status| status["phase"] == "Waiting").await;
    assert_eq!(bound_of(&cluster, "rival").await, 0);
    // Its seat is kept, and whoever is made in its place finds it. The queue takes nobody else.
    cluster.apply(&of_team(1)).await.expect("a pod");
    until_bound(&cluster, "pair", 2).await;
}
