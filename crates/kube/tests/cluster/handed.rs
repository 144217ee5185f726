//! Gangs as operators hand them over whose members are made one after another: a group, its first pods, and the others
//! when those run. The test is in the operator's place.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, Patch, PatchParams};
use muster_testkit::cluster::{Cluster, Role, Setup};
use serde_json::{Value, json};

use crate::controller::Controller;
use crate::gates::until_bound;
use crate::observer::{GANG, LEAST};
use crate::stage::{bound_of, objects, still};
use crate::words::{owned, pod, still_node};

const NAMES: [&str; 5] =
    ["--leader-elect=false", "--scheduler-name", "muster", "--scheduler-name", "volcano"];

/// Waits until somebody's gang is known to wait, and makes sure that nobody of it was started.
async fn waits(cluster: &Cluster, begin: &str) {
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Observer).await, "default");
    cluster
        .until(&format!("{begin} is told why it waits"), async || {
            let pod = pods.get(begin).await.ok()?;
            let said =
                pod.status?.conditions?.into_iter().find(|one| one.type_ == "PodScheduled")?;
            said.message.filter(|said| !said.contains("members exist"))
        })
        .await;
    assert_eq!(bound_of(cluster, begin).await, 0, "{begin} was started without the others");
}

async fn end(cluster: &Cluster, name: &str) {
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Admin).await, "default");
    let over = Patch::Merge(json!({"status": {"phase": "Succeeded"}}));
    pods.patch_status(name, &PatchParams::default(), &over).await.expect("it is done");
}

/// A pod that takes a whole node, and waits as long as others have what is left of the cluster.
async fn stranger_waits(cluster: &Cluster) {
    cluster.apply_as(Role::User, &pod("stranger", 8, "", "", "")).await.expect("a pod");
    waits(cluster, "stranger").await;
}

async fn until_phase(cluster: &Cluster, (group, version): (&str, &str), name: &str, phase: &str) {
    let groups = objects(cluster, (group, version), ("PodGroup", "podgroups")).await;
    cluster
        .until(&format!("{name} is {phase}"), async || {
            let object = groups.get(name).await.ok()?;
            let said = object.data.pointer("/status/phase").and_then(Value::as_str);
            (said == Some(phase)).then_some(())
        })
        .await;
}

const VOLCANO: (&str, &str) = ("scheduling.volcano.sh", "v1beta1");
const VOLCANO_KIND: &str = "volcano/scheduling.volcano.sh_podgroups";

/// Spark's operator counts driver and executors, asks for one member, and leaves the executors to the driver.
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
async fn a_spark_driver_starts_with_room_for_its_executors_who_get_it_also_after_a_restart() {
    let Some(cluster) = still(1, Setup::bare()).await else { return };
    let Some(()) = cluster.define_or_skip(&[VOLCANO_KIND]).await else { return };
    let controller = Controller::start(&cluster, &NAMES);
    cluster.until("a group", async || cluster.apply(SPARK).await.ok()).await;
    cluster.apply(&spark("pi-driver", "driver", 0)).await.expect("a driver");
    waits(&cluster, "pi-driver").await;
    cluster.apply(&still_node("n1")).await.expect("a node");
    until_bound(&cluster, "pi-driver", 1).await;
    stranger_waits(&cluster).await;
    cluster.apply(&spark("pi-exec-1", "executor", 8)).await.expect("an executor");
    until_bound(&cluster, "pi-exec-1", 1).await;
    // The other one is made while nobody looks.
    controller.kill();
    cluster.apply(&spark("pi-exec-2", "executor", 8)).await.expect("an executor");
    let _controller = Controller::start(&cluster, &NAMES);
    until_bound(&cluster, "pi-exec-2", 1).await;
    until_phase(&cluster, VOLCANO, "spark-pi-pg", "Running").await;
    assert_eq!(bound_of(&cluster, "pi-").await, 3, "somebody was sent away");
    assert_eq!(bound_of(&cluster, "stranger").await, 0, "their room was given away");
    for name in ["pi-exec-1", "pi-exec-2", "pi-driver"] {
        end(&cluster, name).await;
    }
    until_bound(&cluster, "stranger", 1).await;
    until_phase(&cluster, VOLCANO, "spark-pi-pg", "Completed").await;
}

/// A template of pods with eight GPUs.
const TEMPLATE: &str = "{spec: {schedulerName: muster, restartPolicy: Never, containers: [{name: main, image: none, resources: {requests: {cpu: 1}, limits: {nvidia.com/gpu: 8}}}]}}";

/// A leader that makes its workers when it is ready, with the group that its operator makes for Volcano.
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
    format!("{set}{}", owned(group, ("v1", "Pod", "llm-0")))
}

fn of_set(name: &str, at: u32) -> String {
    let labels = format!(
        "leaderworkerset.sigs.k8s.io/name: llm, leaderworkerset.sigs.k8s.io/group-index: '0', leaderworkerset.sigs.k8s.io/worker-index: '{at}'"
    );
    let marks = "scheduling.k8s.io/group-name: llm-0-5d0e3a41";
    let set = if at == 0 { "llm" } else { "llm-0" };
    owned(&pod(name, 8, &labels, marks, ""), ("apps/v1", "StatefulSet", set))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_starts_with_room_for_its_workers_who_are_made_when_it_is_ready() {
    let Some(cluster) = still(1, Setup::bare()).await else { return };
    let kinds = [VOLCANO_KIND, "lws/leaderworkerset.x-k8s.io_leaderworkersets"];
    let Some(()) = cluster.define_or_skip(&kinds).await else { return };
    let _controller = Controller::start(&cluster, &NAMES);
    let written = leader_worker_set();
    cluster.until("a set", async || cluster.apply(&written).await.ok()).await;
    cluster.apply(&of_set("llm-0", 0)).await.expect("a leader");
    waits(&cluster, "llm-0").await;
    cluster.apply(&still_node("n1")).await.expect("a node");
    until_bound(&cluster, "llm-0", 1).await;
    stranger_waits(&cluster).await;
    cluster.apply(&of_set("llm-0-1", 1)).await.expect("a worker");
    until_bound(&cluster, "llm-0-1", 1).await;
    until_phase(&cluster, VOLCANO, "llm-0-5d0e3a41", "Running").await;
    assert_eq!(bound_of(&cluster, "stranger").await, 0);
}

const COSCHEDULING: (&str, &str) = ("scheduling.x-k8s.io", "v1alpha1");

/// A TrainJob that loads its data first, with what its operator makes of it: a JobSet whose second job waits for the first,
/// and a group for the coscheduling plugin that counts the pods of both.
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
    format!("{train}{}{}", owned(group, owner), owned(&set, owner))
}

fn of_train_job(name: &str, job: &str, gpus: u32, marks: &str) -> String {
    let labels = format!(
        "{marks}{GANG}: tune-{job}, jobset.sigs.k8s.io/jobset-name: tune, jobset.sigs.k8s.io/replicatedjob-name: {job}, jobset.sigs.k8s.io/job-index: '0'"
    );
    let least = if job == "node" { 2 } else { 1 };
    let pod = pod(name, gpus, &labels, &format!("{LEAST}: '{least}'"), "");
    let pod = pod.replace("limits: {nvidia.com/gpu: 0}, ", "");
    owned(&pod, ("batch/v1", "Job", &format!("tune-{job}-0")))
}

fn job_of_set(job: &str) -> String {
    let made = format!(
        "\n---\napiVersion: batch/v1\nkind: Job\nmetadata: {{name: tune-{job}-0, namespace: default}}\nspec: {{parallelism: 2, completions: 2, completionMode: Indexed, template: {TEMPLATE}}}\n"
    );
    owned(&made, ("jobset.x-k8s.io/v1alpha2", "JobSet", "tune"))
}

/// Plays a TrainJob with an initializer, whose pods bear these marks: half of it never starts, and the nodes' room is kept
/// from the start of the initializer on until they are made.
async fn play_train_job(marks: &str) {
    let Some(cluster) = still(1, Setup::bare()).await else { return };
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
    waits(&cluster, "tune-init").await;
    cluster.apply(&still_node("n1")).await.expect("a node");
    until_bound(&cluster, "tune-init", 1).await;
    end(&cluster, "tune-init").await;
    // Between the two nobody is there, and the controller is another.
    controller.kill();
    let _controller = Controller::start(&cluster, &NAMES);
    stranger_waits(&cluster).await;
    cluster.apply(&job_of_set("node")).await.expect("a job");
    for at in 0..2 {
        let node = of_train_job(&format!("tune-node-{at}"), "node", 8, marks);
        cluster.apply(&node).await.expect("a node's pod");
    }
    until_bound(&cluster, "tune-node", 2).await;
    if !marks.is_empty() {
        until_phase(&cluster, COSCHEDULING, "tune", "Running").await;
    }
    assert_eq!(bound_of(&cluster, "stranger").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_train_job_under_coscheduling_has_room_for_all_before_its_initializer_starts() {
    play_train_job("scheduling.x-k8s.io/pod-group: tune, ").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_train_job_has_room_for_all_before_its_initializer_starts() {
    play_train_job("").await;
}
