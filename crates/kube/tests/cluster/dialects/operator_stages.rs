//! Operators that create members in stages: a group, its first pods, and the others when those run. The test plays the
//! operator.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, Patch, PatchParams};
use muster_testkit::cluster::{Cluster, Role, Setup};
use serde_json::{Value, json};

use crate::fixture::clusters::cluster_without_kubelets;
use crate::fixture::controller::Controller;
use crate::fixture::manifests::{node_without_kubelet, pod, with_owner};
use crate::fixture::objects::custom_objects;
use crate::fixture::pods::{bound_with_prefix, until_bound};
use crate::observer::{GANG, LEAST};

const NAMES: [&str; 5] =
    ["--leader-elect=false", "--scheduler-name", "muster", "--scheduler-name", "volcano"];

/// Waits until a pod reports why its gang waits, and asserts that it is not bound.
async fn until_waiting(cluster: &Cluster, prefix: &str) {
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Observer).await, "default");
    cluster
        .until(&format!("{prefix} reports why it waits"), async || {
            let pod = pods.get(prefix).await.ok()?;
            let reported =
                pod.status?.conditions?.into_iter().find(|one| one.type_ == "PodScheduled")?;
            reported.message.filter(|reported| !reported.contains("members exist"))
        })
        .await;
    assert_eq!(
        bound_with_prefix(cluster, prefix).await,
        0,
        "{prefix} was started without the others"
    );
}

async fn succeed(cluster: &Cluster, name: &str) {
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Admin).await, "default");
    let over = Patch::Merge(json!({"status": {"phase": "Succeeded"}}));
    pods.patch_status(name, &PatchParams::default(), &over).await.expect("it is done");
}

/// Submits a pod that needs a whole node, and asserts that it waits for the nodes that the gang holds.
async fn assert_stranger_waits(cluster: &Cluster) {
    cluster.apply_as(Role::User, &pod("stranger", 8, "", "", "")).await.expect("a pod");
    until_waiting(cluster, "stranger").await;
}

async fn until_phase(cluster: &Cluster, (group, version): (&str, &str), name: &str, phase: &str) {
    let groups = custom_objects(cluster, (group, version), ("PodGroup", "podgroups")).await;
    cluster
        .until(&format!("{name} is {phase}"), async || {
            let object = groups.get(name).await.ok()?;
            let reported = object.data.pointer("/status/phase").and_then(Value::as_str);
            (reported == Some(phase)).then_some(())
        })
        .await;
}

const VOLCANO: (&str, &str) = ("scheduling.volcano.sh", "v1beta1");
const VOLCANO_KIND: &str = "volcano/scheduling.volcano.sh_podgroups";

/// Spark's operator sums driver and executors, sets `minMember: 1`, and leaves the executors to the driver.
const SPARK: &str = "
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata:
  name: spark-pi-pg
  namespace: default
  ownerReferences: [{apiVersion: sparkoperator.k8s.io/v1beta2, kind: SparkApplication, name: pi, uid: 00000000-0000-4000-8000-000000000007, controller: true}]
spec: {minMember: 1, queue: default, minResources: {cpu: 3, nvidia.com/gpu: 16}}
status: {phase: Pending}
";

fn spark(name: &str, role: &str, gpus: u32) -> String {
    let labels = format!("spark-role: {role}, spark-app-name: pi");
    let marks = "scheduling.k8s.io/group-name: spark-pi-pg";
    let pod = pod(name, gpus, &labels, marks, "");
    let pod = pod.replace("schedulerName: muster", "schedulerName: volcano");
    pod.replace("limits: {nvidia.com/gpu: 0}, ", "")
}

#[tokio::test(flavor = "multi_thread")]
async fn spark_driver_starts_with_seats_for_executors_across_restarts() {
    let Some(cluster) = cluster_without_kubelets(1, Setup::bare()).await else { return };
    let Some(()) = cluster.define_or_skip(&[VOLCANO_KIND]).await else { return };
    let controller = Controller::start(&cluster, &NAMES);
    cluster.until("a group", async || cluster.apply(SPARK).await.ok()).await;
    cluster.apply(&spark("pi-driver", "driver", 0)).await.expect("a driver");
    until_waiting(&cluster, "pi-driver").await;
    cluster.apply(&node_without_kubelet("n1")).await.expect("a node");
    until_bound(&cluster, "pi-driver", 1).await;
    assert_stranger_waits(&cluster).await;
    cluster.apply(&spark("pi-exec-1", "executor", 8)).await.expect("an executor");
    until_bound(&cluster, "pi-exec-1", 1).await;
    // The other executor is created while no controller runs.
    controller.kill();
    cluster.apply(&spark("pi-exec-2", "executor", 8)).await.expect("an executor");
    let _controller = Controller::start(&cluster, &NAMES);
    until_bound(&cluster, "pi-exec-2", 1).await;
    until_phase(&cluster, VOLCANO, "spark-pi-pg", "Running").await;
    assert_eq!(bound_with_prefix(&cluster, "pi-").await, 3, "a member was evicted");
    assert_eq!(bound_with_prefix(&cluster, "stranger").await, 0, "their seats were given away");
    for name in ["pi-exec-1", "pi-exec-2", "pi-driver"] {
        succeed(&cluster, name).await;
    }
    until_bound(&cluster, "stranger", 1).await;
    until_phase(&cluster, VOLCANO, "spark-pi-pg", "Completed").await;
}

/// A template of pods with eight GPUs.
const TEMPLATE: &str = "{spec: {schedulerName: muster, restartPolicy: Never, containers: [{name: main, image: none, resources: {requests: {cpu: 1}, limits: {nvidia.com/gpu: 8}}}]}}";

/// A leader whose workers are created when it is ready, with the group that its operator creates for Volcano.
fn leader_worker_set() -> String {
    let group = "
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: llm-0-5d0e3a41, namespace: default}
spec: {minMember: 1, minResources: {cpu: 2, nvidia.com/gpu: 16}}
";
    let set = format!(
        "
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {{name: llm, namespace: default}}
spec:
  replicas: 1
  startupPolicy: LeaderReady
  leaderWorkerTemplate: {{size: 2, leaderTemplate: {TEMPLATE}, workerTemplate: {TEMPLATE}}}
"
    );
    format!("{set}{}", with_owner(group, ("v1", "Pod", "llm-0")))
}

fn of_set(name: &str, at: u32) -> String {
    let labels = format!(
        "leaderworkerset.sigs.k8s.io/name: llm, leaderworkerset.sigs.k8s.io/group-index: '0', leaderworkerset.sigs.k8s.io/worker-index: '{at}'"
    );
    let marks = "scheduling.k8s.io/group-name: llm-0-5d0e3a41";
    let set = if at == 0 { "llm" } else { "llm-0" };
    with_owner(&pod(name, 8, &labels, marks, ""), ("apps/v1", "StatefulSet", set))
}

#[tokio::test(flavor = "multi_thread")]
async fn lws_leader_starts_with_seats_for_workers_created_later() {
    let Some(cluster) = cluster_without_kubelets(1, Setup::bare()).await else { return };
    let kinds = [VOLCANO_KIND, "lws/leaderworkerset.x-k8s.io_leaderworkersets"];
    let Some(()) = cluster.define_or_skip(&kinds).await else { return };
    let _controller = Controller::start(&cluster, &NAMES);
    let written = leader_worker_set();
    cluster.until("a set", async || cluster.apply(&written).await.ok()).await;
    cluster.apply(&of_set("llm-0", 0)).await.expect("a leader");
    until_waiting(&cluster, "llm-0").await;
    cluster.apply(&node_without_kubelet("n1")).await.expect("a node");
    until_bound(&cluster, "llm-0", 1).await;
    assert_stranger_waits(&cluster).await;
    cluster.apply(&of_set("llm-0-1", 1)).await.expect("a worker");
    until_bound(&cluster, "llm-0-1", 1).await;
    until_phase(&cluster, VOLCANO, "llm-0-5d0e3a41", "Running").await;
    assert_eq!(bound_with_prefix(&cluster, "stranger").await, 0);
}

const COSCHEDULING: (&str, &str) = ("scheduling.x-k8s.io", "v1alpha1");

/// A TrainJob that loads its data first, with the objects that its operator creates: a JobSet whose second job waits
/// for the first, and a group for the coscheduling plugin that counts the pods of both.
fn train_job() -> String {
    let train = "
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: tune, namespace: default}
spec:
  runtimeRef: {name: torch-distributed}
  initializer: {dataset: {storageUri: 's3://data'}}
  trainer: {numNodes: 2, resourcesPerNode: {limits: {nvidia.com/gpu: 8}}}
";
    let group = "
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: tune, namespace: default}
spec: {minMember: 3, scheduleTimeoutSeconds: 60}
";
    let small = TEMPLATE.replace(", limits: {nvidia.com/gpu: 8}", "");
    let set = format!(
        "
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {{name: tune, namespace: default}}
spec:
  replicatedJobs:
  - {{name: dataset-initializer, replicas: 1, template: {{spec: {{parallelism: 1, completions: 1, template: {small}}}}}}}
  - {{name: node, replicas: 1, dependsOn: [{{name: dataset-initializer, status: Complete}}], template: {{spec: {{parallelism: 2, completions: 2, completionMode: Indexed, template: {TEMPLATE}}}}}}}
"
    );
    let owner = ("trainer.kubeflow.org/v1alpha1", "TrainJob", "tune");
    format!("{train}{}{}", with_owner(group, owner), with_owner(&set, owner))
}

fn of_train_job(name: &str, job: &str, gpus: u32, marks: &str) -> String {
    let labels = format!(
        "{marks}{GANG}: tune-{job}, jobset.sigs.k8s.io/jobset-name: tune, jobset.sigs.k8s.io/replicatedjob-name: {job}, jobset.sigs.k8s.io/job-index: '0'"
    );
    let least = if job == "node" { 2 } else { 1 };
    let pod = pod(name, gpus, &labels, &format!("{LEAST}: '{least}'"), "");
    let pod = pod.replace("limits: {nvidia.com/gpu: 0}, ", "");
    with_owner(&pod, ("batch/v1", "Job", &format!("tune-{job}-0")))
}

fn job_of_set(job: &str) -> String {
    let made = format!(
        "\n---\napiVersion: batch/v1\nkind: Job\nmetadata: {{name: tune-{job}-0, namespace: default}}\nspec: {{parallelism: 2, completions: 2, completionMode: Indexed, template: {TEMPLATE}}}\n"
    );
    with_owner(&made, ("jobset.x-k8s.io/v1alpha2", "JobSet", "tune"))
}

/// Plays a TrainJob with an initializer, whose pods have these labels: it never starts in part, and the seats of the
/// nodes are held from the start of the initializer until their pods exist.
async fn play_train_job(marks: &str) {
    let Some(cluster) = cluster_without_kubelets(1, Setup::bare()).await else { return };
    let kinds = [
        "scheduler-plugins/scheduling.x-k8s.io_podgroups",
        "jobset/jobset.x-k8s.io_jobsets",
        "trainer/trainer.kubeflow.org_trainjobs",
    ];
    let Some(()) = cluster.define_or_skip(&kinds).await else { return };
    let written = train_job();
    cluster.until("a job", async || cluster.apply(&written).await.ok()).await;
    let controller = Controller::start(&cluster, &NAMES);
    cluster.apply(&job_of_set("dataset-initializer")).await.expect("a job");
    let initializer = of_train_job("tune-init", "dataset-initializer", 0, marks);
    cluster.apply(&initializer).await.expect("an initializer");
    until_waiting(&cluster, "tune-init").await;
    cluster.apply(&node_without_kubelet("n1")).await.expect("a node");
    until_bound(&cluster, "tune-init", 1).await;
    succeed(&cluster, "tune-init").await;
    // Between the two stages no pod exists, and the controller restarts.
    controller.kill();
    let _controller = Controller::start(&cluster, &NAMES);
    assert_stranger_waits(&cluster).await;
    cluster.apply(&job_of_set("node")).await.expect("a job");
    for at in 0..2 {
        let node = of_train_job(&format!("tune-node-{at}"), "node", 8, marks);
        cluster.apply(&node).await.expect("a node's pod");
    }
    until_bound(&cluster, "tune-node", 2).await;
    if !marks.is_empty() {
        until_phase(&cluster, COSCHEDULING, "tune", "Running").await;
    }
    assert_eq!(bound_with_prefix(&cluster, "stranger").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn coscheduled_train_job_has_all_seats_before_its_initializer() {
    play_train_job("scheduling.x-k8s.io/pod-group: tune, ").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn train_job_has_all_seats_before_its_initializer_starts() {
    play_train_job("").await;
}
