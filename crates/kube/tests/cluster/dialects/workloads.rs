//! Every kind of workload, as its users write it; the test plays the operator. With half of its pods none starts; with
//! all of them all start together.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use muster_testkit::cluster::{Cluster, Setup};

use crate::fixture::clusters::cluster_without_kubelets;
use crate::fixture::controller::Controller;
use crate::fixture::manifests::{pod, with_owner};
use crate::fixture::objects::{gang_status, until_gang_status};
use crate::fixture::pods::{
    bound_pods, bound_with_prefix, pods_with_prefix, remove_pods, until_bound,
    until_waiting_for_members,
};
use crate::observer::{GANG, LEAST};

/// Four pods with four GPUs each, of which two exist at first.
const PODS: u32 = 4;

/// A pod of a workload as its operator makes it: its name, its labels, and its owner's version, kind and name.
type Made = (String, String, (&'static str, &'static str, String));

/// A kind of workload.
struct Operator {
    name: &'static str,
    /// The name of its gang.
    gang: String,
    /// The CRD of its kind.
    kind: String,
    /// The manifest of its user, and the objects besides pods that its operator creates.
    manifests: String,
    pods: Vec<Made>,
}

/// A template of pods with four GPUs.
const TEMPLATE: &str = "{spec: {schedulerName: muster, restartPolicy: Never, containers: [{name: main, image: none, resources: {requests: {cpu: 1}, limits: {nvidia.com/gpu: 4}}}]}}";

fn operators() -> Vec<Operator> {
    let mut all = vec![job_set(), train_job(), ray_cluster(), leader_worker_set()];
    for (kind, plural, field, first) in [
        ("PyTorchJob", "pytorchjobs", "pytorchReplicaSpecs", "Master"),
        ("TFJob", "tfjobs", "tfReplicaSpecs", "PS"),
        ("XGBoostJob", "xgboostjobs", "xgbReplicaSpecs", "Master"),
        ("PaddleJob", "paddlejobs", "paddleReplicaSpecs", "Master"),
        ("MPIJob", "mpijobs", "mpiReplicaSpecs", "Launcher"),
    ] {
        all.push(kubeflow(kind, plural, field, first));
    }
    all.push(jax_job());
    all
}

/// Jobs of Kubeflow's Training Operator: one of a first kind, and three workers.
fn kubeflow(
    kind: &'static str,
    plural: &'static str,
    field: &'static str,
    first: &'static str,
) -> Operator {
    let name = plural.trim_end_matches('s');
    let first_of_all =
        format!("{first}: {{replicas: 1, restartPolicy: OnFailure, template: {TEMPLATE}}}");
    let manifests = kubeflow_manifest(kind, name, field, &first_of_all, 3);
    let mut pods = vec![kubeflow_pod(kind, name, &first.to_lowercase(), 0)];
    pods.extend((0..3).map(|at| kubeflow_pod(kind, name, "worker", at)));
    let gang = match kind {
        "MPIJob" => format!("{name}.mpijobv1"),
        _ => format!("{name}.{}", kind.to_lowercase()),
    };
    Operator {
        name,
        gang,
        kind: format!("training-operator/kubeflow.org_{plural}"),
        manifests,
        pods,
    }
}

fn kubeflow_manifest(kind: &str, name: &str, field: &str, first: &str, workers: u32) -> String {
    format!(
        "
apiVersion: kubeflow.org/v1
kind: {kind}
metadata: {{name: {name}, namespace: default}}
spec:
  runPolicy: {{cleanPodPolicy: None}}
  {field}:
    {first}
    Worker: {{replicas: {workers}, restartPolicy: OnFailure, template: {TEMPLATE}}}
"
    )
}

fn kubeflow_pod(kind: &'static str, name: &str, role: &str, at: u32) -> Made {
    let labels = format!(
        "training.kubeflow.org/job-name: {name}, training.kubeflow.org/operator-name: {name}-controller, training.kubeflow.org/replica-type: {role}, training.kubeflow.org/replica-index: '{at}'"
    );
    (format!("{name}-{role}-{at}"), labels, ("kubeflow.org/v1", kind, name.to_owned()))
}

/// The one of them that has only workers.
fn jax_job() -> Operator {
    Operator {
        name: "jaxjob",
        gang: "jaxjob.jaxjob".to_owned(),
        kind: "training-operator/kubeflow.org_jaxjobs".to_owned(),
        manifests: kubeflow_manifest("JAXJob", "jaxjob", "jaxReplicaSpecs", "", PODS),
        pods: (0..PODS).map(|at| kubeflow_pod("JAXJob", "jaxjob", "worker", at)).collect(),
    }
}

/// The Jobs that a JobSet makes, two of two pods each.
fn jobs_of(set: &str, replicated: &str) -> String {
    let job = |at: u32| {
        let job = format!(
            "\n---\napiVersion: batch/v1\nkind: Job\nmetadata: {{name: {set}-{replicated}-{at}, namespace: default}}\nspec: {{parallelism: 2, completions: 2, completionMode: Indexed, template: {TEMPLATE}}}\n"
        );
        with_owner(&job, ("jobset.x-k8s.io/v1alpha2", "JobSet", set))
    };
    (0..2).map(job).collect()
}

fn pods_of_jobs(set: &'static str, replicated: &str) -> Vec<Made> {
    let member = |at: u32| {
        let (job, index) = (at / 2, at % 2);
        let name = format!("{set}-{replicated}-{job}");
        let labels = format!(
            "jobset.sigs.k8s.io/jobset-name: {set}, jobset.sigs.k8s.io/replicatedjob-name: {replicated}, jobset.sigs.k8s.io/job-index: '{job}', batch.kubernetes.io/job-name: {name}, batch.kubernetes.io/job-completion-index: '{index}'"
        );
        (format!("{name}-{index}-abcde"), labels, ("batch/v1", "Job", name))
    };
    (0..PODS).map(member).collect()
}

fn job_set_of(name: &str, replicated: &str) -> String {
    format!(
        "
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {{name: {name}, namespace: default}}
spec:
  network: {{enableDNSHostnames: true}}
  replicatedJobs:
  - name: {replicated}
    replicas: 2
    template: {{spec: {{parallelism: 2, completions: 2, backoffLimit: 0, completionMode: Indexed, template: {TEMPLATE}}}}}
"
    )
}

fn job_set() -> Operator {
    Operator {
        name: "slices",
        gang: "slices.jobset".to_owned(),
        kind: "jobset/jobset.x-k8s.io_jobsets".to_owned(),
        // Its Jobs are created after their pods: the owner of the pods is unknown until then.
        manifests: job_set_of("slices", "workers"),
        pods: pods_of_jobs("slices", "workers"),
    }
}

/// A TrainJob; its operator creates a JobSet of the same name.
fn train_job() -> Operator {
    let train = "
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: tune, namespace: default}
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {numNodes: 4, resourcesPerNode: {limits: {nvidia.com/gpu: 4}}}
";
    let owner = ("trainer.kubeflow.org/v1alpha1", "TrainJob", "tune");
    let set = with_owner(&job_set_of("tune", "node"), owner);
    Operator {
        name: "tune",
        gang: "tune.trainjob".to_owned(),
        kind: "trainer/trainer.kubeflow.org_trainjobs".to_owned(),
        manifests: format!("{train}{set}{}", jobs_of("tune", "node")),
        pods: pods_of_jobs("tune", "node"),
    }
}

fn ray_manifest(name: &str, scales: &str, workers: &str) -> String {
    format!(
        "
apiVersion: ray.io/v1
kind: RayCluster
metadata: {{name: {name}, namespace: default}}
spec:
  rayVersion: '2.52.0'
  {scales}
  headGroupSpec: {{rayStartParams: {{dashboard-host: 0.0.0.0}}, template: {TEMPLATE}}}
  workerGroupSpecs:
  - {{groupName: gpu, {workers}, rayStartParams: {{}}, template: {TEMPLATE}}}
"
    )
}

fn ray_pod(cluster: &str, group: &str, at: u32) -> Made {
    let kind = if group == "headgroup" { "head" } else { "worker" };
    let labels =
        format!("ray.io/cluster: {cluster}, ray.io/node-type: {kind}, ray.io/group: {group}");
    let owner = ("ray.io/v1", "RayCluster", cluster.to_owned());
    (format!("{cluster}-{group}-{at}"), labels, owner)
}

fn ray_cluster() -> Operator {
    let pods = [("headgroup", 0), ("gpu", 0), ("gpu", 1), ("gpu", 2)];
    Operator {
        name: "ray",
        gang: "ray.raycluster".to_owned(),
        kind: "kuberay/ray.io_rayclusters".to_owned(),
        manifests: ray_manifest("ray", "", "replicas: 3"),
        pods: pods.into_iter().map(|(group, at)| ray_pod("ray", group, at)).collect(),
    }
}

/// StatefulSets create its pods, and the leader's pod owns the workers: only labels name their set.
fn leader_worker_set() -> Operator {
    let manifests = format!(
        "
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {{name: llm, namespace: default}}
spec:
  replicas: 1
  leaderWorkerTemplate: {{size: 4, leaderTemplate: {TEMPLATE}, workerTemplate: {TEMPLATE}}}
"
    );
    let member = |at: u32| {
        let labels = format!(
            "leaderworkerset.sigs.k8s.io/name: llm, leaderworkerset.sigs.k8s.io/group-index: '0', leaderworkerset.sigs.k8s.io/group-key: k, leaderworkerset.sigs.k8s.io/worker-index: '{at}'"
        );
        let (name, set) =
            if at == 0 { ("llm-0".into(), "llm") } else { (format!("llm-0-{at}"), "llm-0") };
        (name, labels, ("apps/v1", "StatefulSet", set.to_owned()))
    };
    Operator {
        name: "llm",
        gang: "llm-0.leaderworkerset".to_owned(),
        kind: "lws/leaderworkerset.x-k8s.io_leaderworkersets".to_owned(),
        manifests,
        pods: (0..PODS).map(member).collect(),
    }
}

/// The manifest of a pod, with the observer's label and its minimum.
fn made(gang: &str, least: u32, (name, labels, (version, kind, owner)): &Made) -> String {
    let labels = format!("{GANG}: {gang}, {labels}");
    let pod = pod(name, 4, &labels, &format!("{LEAST}: '{least}'"), "");
    with_owner(&pod, (version, kind, owner))
}

async fn make(cluster: &Cluster, operator: &Operator, pods: &[Made]) {
    for one in pods {
        let pod = made(operator.name, PODS, one);
        cluster.apply(&pod).await.unwrap_or_else(|error| panic!("{}: {error}", operator.name));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_workload_starts_whole_or_not_at_all() {
    let Some(cluster) = cluster_without_kubelets(2, Setup::bare()).await else { return };
    let mut operators = operators();
    if let Ok(only) = std::env::var("MUSTER_WORKLOAD") {
        operators.retain(|operator| operator.name == only);
    }
    let kinds: Vec<&str> = operators.iter().map(|operator| operator.kind.as_str()).collect();
    let Some(()) = cluster.define_or_skip(&kinds).await else { return };
    for operator in &operators {
        let what = format!("the {} is written", operator.name);
        cluster.until(&what, async || cluster.apply(&operator.manifests).await.ok()).await;
    }
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    // Half of every workload: each pod would fit, and none starts.
    for operator in &operators {
        make(&cluster, operator, &operator.pods[..2]).await;
    }
    until_waiting_for_members(&cluster, |pod: &Pod| pod.name_any().starts_with("slices")).await;
    assert_eq!(bound_pods(&cluster).await, 0);
    cluster.apply(&jobs_of("slices", "workers")).await.expect("its jobs");
    until_waiting_for_members(&cluster, |_| false).await;
    assert_eq!(bound_pods(&cluster).await, 0);
    for operator in &operators {
        make(&cluster, operator, &operator.pods[2..]).await;
        until_bound(&cluster, &format!("{}-", operator.name), PODS as usize).await;
        until_gang_status(&cluster, &operator.gang, |status| {
            status["phase"] == "Running" && status["members"]["ready"] == PODS
        })
        .await;
        remove_pods(&cluster, &format!("{}-", operator.name)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn autoscaling_ray_cluster_gets_seats_as_its_pods_appear() {
    let Some(cluster) = cluster_without_kubelets(2, Setup::bare()).await else { return };
    let Some(()) = cluster.define_or_skip(&[&ray_cluster().kind]).await else { return };
    let ray = ray_manifest(
        "ray",
        "enableInTreeAutoscaling: true",
        "replicas: 1, minReplicas: 1, maxReplicas: 3",
    );
    cluster.until("the cluster is written", async || cluster.apply(&ray).await.ok()).await;
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    for one in [ray_pod("ray", "headgroup", 0), ray_pod("ray", "gpu", 0)] {
        cluster.apply(&made("ray", 2, &one)).await.expect("a pod");
    }
    until_bound(&cluster, "ray", 2).await;
    until_gang_status(&cluster, "ray.raycluster", |status| status["phase"] == "Running").await;
    let status = gang_status(&cluster, "ray.raycluster").await;
    let seats = status["placement"].as_array().expect("it is written down").iter();
    let seats = seats.filter_map(|one| one["members"].as_u64());
    assert_eq!(seats.sum::<u64>(), 2, "{status}");
    // Its autoscaler creates two more.
    for at in 1..3 {
        cluster.apply(&made("ray", 2, &ray_pod("ray", "gpu", at))).await.expect("a pod");
    }
    until_bound(&cluster, "ray", 4).await;
    assert_eq!(bound_with_prefix(&cluster, "ray-gpu").await, 3);
    assert_eq!(pods_with_prefix(&cluster, "ray").await.len(), 4);
}
