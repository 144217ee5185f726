//! Gangs with pod templates: Muster creates their pods, and no operator is needed.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use muster_testkit::cluster::{Cluster, Role};
use serde_json::{Value, json};

use crate::fixture::clusters::kwok_cluster;
use crate::fixture::controller::Controller;
use crate::fixture::objects::custom_objects;
use crate::fixture::pods::{bound_with_prefix, remove_pods};

fn gang(name: &str) -> String {
    format!(
        "
apiVersion: muster.sh/v1alpha1
kind: Gang
metadata: {{name: {name}, namespace: default}}
spec:
  roles:
  - name: worker
    min: 2
    resources: {{nvidia.com/gpu: 8, cpu: 1}}
    template:
      spec: {{containers: [{{name: worker, image: none}}]}}
"
    )
}

async fn pods(cluster: &Cluster) -> Api<Pod> {
    Api::namespaced(cluster.client(Role::Admin).await, "default")
}

async fn end_as(pods: &Api<Pod>, name: &str, phase: &str) {
    let over = Patch::Merge(json!({"status": {"phase": phase}}));
    pods.patch_status(name, &PatchParams::default(), &over).await.expect("it is over");
}

async fn until_phase(cluster: &Cluster, name: &str, phase: &str) {
    let kind = GroupVersionKind::gvk("muster.sh", "v1alpha1", "Gang");
    let gangs: Api<DynamicObject> = Api::namespaced_with(
        cluster.client(Role::Observer).await,
        "default",
        &ApiResource::from_gvk(&kind),
    );
    cluster
        .until(&format!("{name} is {phase}"), async || {
            let gang = gangs.get(name).await.ok()?;
            let message = gang.data.pointer("/status/phase").and_then(Value::as_str)?;
            (message == phase).then_some(())
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gang_with_templates_gets_its_pods_and_finishes() {
    let Some(cluster) = kwok_cluster(2).await else { return };
    let controller = Controller::start(&cluster, &["--leader-elect=false"]);
    let pods = pods(&cluster).await;
    cluster.apply(&gang("train")).await.expect("a gang");
    cluster
        .until("both are bound", async || {
            (bound_with_prefix(&cluster, "train").await == 2).then_some(())
        })
        .await;
    // A removed member is created again and takes its seat, also under the next leader.
    cluster.allow_violation("default/train was left in part");
    controller.kill();
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    pods.delete("train-worker-1", &DeleteParams::default().grace_period(0)).await.expect("gone");
    cluster
        .until("it is made again", async || {
            let pod = pods.get_opt("train-worker-1").await.ok()??;
            let new = pod.metadata.deletion_timestamp.is_none();
            (new && pod.spec?.node_name.is_some()).then_some(())
        })
        .await;
    for name in ["train-worker-0", "train-worker-1"] {
        end_as(&pods, name, "Succeeded").await;
    }
    until_phase(&cluster, "train", "Succeeded").await;
    // The room is free again. A failed member ends the gang, and is not created again.
    cluster.apply(&gang("broken")).await.expect("a gang");
    cluster
        .until("the next is bound", async || {
            (bound_with_prefix(&cluster, "broken").await == 2).then_some(())
        })
        .await;
    end_as(&pods, "broken-worker-0", "Failed").await;
    until_phase(&cluster, "broken", "Failed").await;
    cluster
        .until("the other is gone", async || {
            let all = pods.list(&ListParams::default()).await.ok()?.items;
            let mut names = all.iter().filter_map(|pod| pod.metadata.name.as_deref());
            (!names.any(|name| name == "broken-worker-1")).then_some(())
        })
        .await;
}

/// A member of the gang `pair`, which has no Gang of its user.
fn half(name: &str) -> String {
    let marks = "muster.sh/gang: pair, muster.sh/gang-size: '2'";
    format!(
        "
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: default, annotations: {{{marks}}}}}
spec:
  schedulerName: muster
  containers: [{{name: worker, image: none, resources: {{limits: {{nvidia.com/gpu: 8}}}}}}]
"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn gang_object_written_by_a_user_is_not_removed() {
    let Some(cluster) = kwok_cluster(1).await else { return };
    let controller = Controller::start(&cluster, &["--leader-elect=false"]);
    for name in ["half-0", "half-1"] {
        cluster.apply(&half(name)).await.expect("a pod");
    }
    until_phase(&cluster, "pair", "Infeasible").await;
    cluster.apply(&gang("pair").replace("min: 2", "min: 7")).await.expect("a gang");
    remove_pods(&cluster, "half-").await;
    cluster
        .until("it is left alone", async || {
            controller.log().contains("its object was written by a user").then_some(())
        })
        .await;
    let gangs = custom_objects(&cluster, ("muster.sh", "v1alpha1"), ("Gang", "gangs")).await;
    let left = gangs.get("pair").await.expect("it is there");
    let roles = left.data.pointer("/spec/roles").and_then(Value::as_array);
    let mut roles = roles.into_iter().flatten();
    assert!(roles.any(|role| role["min"] == 7), "{}", left.data["spec"]);
}
