//! Members created in stages, and groups whose pods are created only after admission.

use std::time::Duration;

use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use muster_testkit::cluster::{Cluster, Role};
use serde_json::{Value, json};

use crate::fixture::clusters::kwok_cluster;
use crate::fixture::controller::Controller;
use crate::fixture::manifests::{pod, with_owner};
use crate::fixture::pods::bound_with_prefix;
use crate::observer::{GANG, LEAST};

const VOLCANO: [&str; 5] =
    ["--leader-elect=false", "--scheduler-name", "muster", "--scheduler-name", "volcano"];

/// The child queue is written before its parent.
const QUEUES: &str = "
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: small, annotations: {muster.sh/namespaces: default}}
spec: {weight: 1, parent: team, capability: {nvidia.com/gpu: 8}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: team}
spec: {weight: 2, reclaimable: true}
";

async fn groups(cluster: &Cluster) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("scheduling.volcano.sh", "v1beta1", "PodGroup");
    let kind = ApiResource::from_gvk(&kind);
    Api::namespaced_with(cluster.client(Role::Admin).await, "default", &kind)
}

/// A group of a job operator that creates no pod before the group is admitted.
fn group(name: &str, members: u32, resources: &str) -> String {
    format!(
        "
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {{name: {name}, namespace: default}}
spec: {{minMember: {members}, {resources}}}
status: {{phase: Pending}}
"
    )
}

fn member(group: &str, at: u32, of: u32) -> String {
    let marks = format!("scheduling.k8s.io/group-name: {group}, {LEAST}: '{of}'");
    pod(&format!("{group}-{at}"), 8, &format!("{GANG}: {group}"), &marks, "")
        .replace("schedulerName: muster", "schedulerName: volcano")
}

async fn phase(groups: &Api<DynamicObject>, name: &str) -> Option<String> {
    let object = groups.get(name).await.ok()?;
    object.data.pointer("/status/phase").and_then(Value::as_str).map(str::to_owned)
}

#[tokio::test(flavor = "multi_thread")]
async fn group_without_pods_is_admitted_when_all_of_it_fits() {
    let Some(cluster) = kwok_cluster(3).await else { return };
    let kinds = ["volcano/scheduling.volcano.sh_podgroups", "volcano/scheduling.volcano.sh_queues"];
    let Some(()) = cluster.define_or_skip(&kinds).await else { return };
    cluster.until("queues", async || cluster.apply(QUEUES).await.ok()).await;
    let controller = Controller::start(&cluster, &VOLCANO);
    let groups = groups(&cluster).await;
    let takes = "minResources: {cpu: 2, nvidia.com/gpu: 16}";
    for name in ["first", "second"] {
        cluster.apply(&group(name, 2, takes)).await.expect("a group");
        let is = if name == "first" { "Inqueue" } else { "Pending" };
        cluster
            .until(&format!("{name} is {is}"), async || {
                (phase(&groups, name).await? == is).then_some(())
            })
            .await;
    }
    // Its queue never has more than one node.
    cluster.apply(&group("third", 2, &format!("{takes}, queue: small"))).await.expect("a group");
    cluster
        .until("the status of the third names its queue", async || {
            let object = groups.get("third").await.ok()?;
            object.data.get("status")?.to_string().contains("small").then_some(())
        })
        .await;
    // A group without `minResources` is admitted, so that its pods state what they need.
    cluster.apply(&group("silent", 2, "queue: default")).await.expect("a group");
    cluster
        .until("the silent one is let in", async || {
            (phase(&groups, "silent").await? == "Inqueue").then_some(())
        })
        .await;
    // An admission outlives the leader that gave it.
    controller.kill();
    let _controller = Controller::start(&cluster, &VOLCANO);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(phase(&groups, "second").await.as_deref(), Some("Pending"));
    cluster.apply_as(Role::User, &member("first", 0, 2)).await.expect("a pod");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(bound_with_prefix(&cluster, "first").await, 0, "half of it was started");
    cluster.apply_as(Role::User, &member("first", 1, 2)).await.expect("a pod");
    cluster
        .until("the first is bound", async || {
            (bound_with_prefix(&cluster, "first").await == 2).then_some(())
        })
        .await;
    assert_eq!(phase(&groups, "second").await.as_deref(), Some("Pending"));
    cluster
        .until("the first runs", async || {
            (phase(&groups, "first").await? == "Running").then_some(())
        })
        .await;
}

/// An MPIJob whose launcher is created when the workers run.
const MPI_JOB: &str = "
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: ring, namespace: default}
spec:
  launcherCreationPolicy: WaitForWorkersReady
  mpiReplicaSpecs:
    Launcher: {replicas: 1, template: {spec: {schedulerName: muster, containers: [{name: worker, image: none, resources: {requests: {cpu: 1}, limits: {nvidia.com/gpu: 8}}}]}}}
    Worker: {replicas: 2, template: {spec: {schedulerName: muster, containers: [{name: worker, image: none, resources: {requests: {cpu: 1}, limits: {nvidia.com/gpu: 8}}}]}}}
";

fn made(name: &str, role: &str) -> String {
    let labels = format!("training.kubeflow.org/job-role: {role}, {GANG}: ring-{role}");
    let least = if role == "worker" { 2 } else { 1 };
    with_owner(
        &pod(name, 8, &labels, &format!("{LEAST}: '{least}'"), ""),
        ("kubeflow.org/v2beta1", "MPIJob", "ring"),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn seats_are_held_for_members_created_after_others_run() {
    let Some(cluster) = kwok_cluster(3).await else { return };
    let Some(()) = cluster.define_or_skip(&["mpi-operator/kubeflow.org_mpijobs"]).await else {
        return;
    };
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.until("a job", async || cluster.apply(MPI_JOB).await.ok()).await;
    for at in 0..2 {
        let worker = made(&format!("ring-worker-{at}"), "worker");
        cluster.apply(&worker).await.expect("a worker");
    }
    cluster
        .until("the workers are bound", async || {
            (bound_with_prefix(&cluster, "ring-worker").await == 2).then_some(())
        })
        .await;
    // The third node is held for the launcher, whose pod does not exist yet.
    cluster.apply_as(Role::User, &pod("stranger", 8, "", "", "")).await.expect("a pod");
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(
        bound_with_prefix(&cluster, "stranger").await,
        0,
        "the launcher's seat was given away"
    );
    cluster.apply(&made("ring-launcher", "launcher")).await.expect("a launcher");
    cluster
        .until("the launcher is bound", async || {
            (bound_with_prefix(&cluster, "ring-launcher").await == 1).then_some(())
        })
        .await;
    // When they are done, the other pod starts.
    let pods: Api<k8s_openapi::api::core::v1::Pod> =
        Api::namespaced(cluster.client(Role::Admin).await, "default");
    for name in ["ring-worker-0", "ring-worker-1", "ring-launcher"] {
        let over = Patch::Merge(json!({"status": {"phase": "Succeeded"}}));
        pods.patch_status(name, &PatchParams::default(), &over).await.expect("it is done");
    }
    cluster
        .until("the stranger is bound", async || {
            (bound_with_prefix(&cluster, "stranger").await == 1).then_some(())
        })
        .await;
}
