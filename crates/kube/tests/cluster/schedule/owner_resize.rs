//! Owners resize workloads while they run: seats follow, and no running member is evicted for it.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams};
use muster_testkit::cluster::{Cluster, Part, Role, Setup};
use serde_json::{Value, json};

use crate::fixture::clusters::{cluster_without_kubelets, kwok_cluster};
use crate::fixture::controller::Controller;
use crate::fixture::manifests::{crd, gang, job, node_without_kubelet, pod, with_owner};
use crate::fixture::objects::{gang_status, submit, until_event, until_gang_status};
use crate::fixture::pods::{bound_with_prefix, finish_termination, terminating_pods};
use crate::observer::{GANG, Kind, LEAST};

/// Long enough for the controller to act wrongly.
const A_WHILE: Duration = Duration::from_secs(3);

/// A Job of this many pods with 8 GPUs each, that may shrink to `least`.
fn shrinking_job(name: &str, pods: u32, least: u32) -> String {
    job(name, pods, 8).replace(&format!("{LEAST}: '{pods}'"), &format!("{LEAST}: '{least}'"))
}

/// Sets the size of a Job.
async fn resize_job(cluster: &Cluster, name: &str, pods: u32) {
    let jobs: Api<Job> = Api::namespaced(cluster.client(Role::Admin).await, "default");
    let patch = Patch::Merge(json!({"spec": {"parallelism": pods, "completions": pods}}));
    jobs.patch(name, &PatchParams::default(), &patch).await.expect("a Job can be resized");
}

async fn until_bound(cluster: &Cluster, prefix: &str, count: usize) {
    cluster
        .until(&format!("{count} pods of {prefix} are bound"), async || {
            (bound_with_prefix(cluster, prefix).await == count).then_some(())
        })
        .await;
}

/// UIDs of pods with this prefix that are bound and not terminating.
async fn members(cluster: &Cluster, prefix: &str) -> BTreeSet<String> {
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Observer).await, "default");
    let all = pods.list(&ListParams::default()).await.expect("pods").items;
    let stays = |pod: &&Pod| {
        pod.name_any().starts_with(prefix)
            && pod.metadata.deletion_timestamp.is_none()
            && pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())
    };
    all.iter().filter(stays).filter_map(ResourceExt::uid).collect()
}

/// Waits until the owner has deleted this many pods.
async fn until_leaving(cluster: &Cluster, prefix: &str, count: usize) -> Vec<Pod> {
    cluster
        .until(&format!("{count} pods of {prefix} are leaving"), async || {
            Some(terminating_pods(cluster, prefix).await).filter(|leaving| leaving.len() == count)
        })
        .await
}

/// Waits until a gang reports that it runs with this many members.
async fn until_running_with(cluster: &Cluster, gang: &str, members: u64) {
    until_gang_status(cluster, gang, |status| {
        let seats = status["placement"].as_array().into_iter().flatten();
        let seats = seats.filter_map(|one| one["members"].as_u64()).sum::<u64>();
        status["phase"] == "Running" && status["members"]["total"] == members && seats == members
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn job_made_smaller_frees_its_seats_and_the_next_job_evicts_none() {
    let Some(cluster) =
        cluster_without_kubelets(5, Setup::bare().with(Part::ControllerManager)).await
    else {
        return;
    };
    let controller = Controller::start(&cluster, &["--leader-elect=false"]);
    submit(&cluster, &shrinking_job("one", 4, 2)).await;
    until_bound(&cluster, "one", 4).await;
    until_running_with(&cluster, "one.job", 4).await;
    resize_job(&cluster, "one", 2).await;
    let gone = until_leaving(&cluster, "one", 2).await;
    let left = members(&cluster, "one").await;
    assert_eq!(left.len(), 2);
    finish_termination(&cluster, &gone).await;
    until_running_with(&cluster, "one.job", 2).await;
    until_event(&cluster, "one.job", "Shrunk", "to 2 members").await;
    submit(&cluster, &job("two", 3, 8)).await;
    until_bound(&cluster, "two", 3).await;
    assert_eq!(members(&cluster, "one").await, left, "a member was evicted though there was room");
    // Neither now nor under the next leader.
    controller.kill();
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(members(&cluster, "one").await, left);
    until_running_with(&cluster, "one.job", 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_job_takes_the_seats_of_a_job_made_smaller() {
    let Some(cluster) =
        cluster_without_kubelets(5, Setup::bare().with(Part::ControllerManager)).await
    else {
        return;
    };
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    submit(&cluster, &shrinking_job("one", 4, 2)).await;
    until_bound(&cluster, "one", 4).await;
    until_running_with(&cluster, "one.job", 4).await;
    submit(&cluster, &job("two", 3, 8)).await;
    until_gang_status(&cluster, "two.job", |status| status["phase"] == "Waiting").await;
    resize_job(&cluster, "one", 2).await;
    let gone = until_leaving(&cluster, "one", 2).await;
    let left = members(&cluster, "one").await;
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(members(&cluster, "one").await, left, "evicted while two others go");
    finish_termination(&cluster, &gone).await;
    until_bound(&cluster, "two", 3).await;
    assert_eq!(members(&cluster, "one").await, left);
    until_running_with(&cluster, "one.job", 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn job_made_smaller_while_no_controller_runs_keeps_its_members() {
    let Some(cluster) =
        cluster_without_kubelets(5, Setup::bare().with(Part::ControllerManager)).await
    else {
        return;
    };
    let controller = Controller::start(&cluster, &["--leader-elect=false"]);
    submit(&cluster, &shrinking_job("one", 4, 2)).await;
    until_bound(&cluster, "one", 4).await;
    until_running_with(&cluster, "one.job", 4).await;
    controller.kill();
    resize_job(&cluster, "one", 2).await;
    finish_termination(&cluster, &until_leaving(&cluster, "one", 2).await).await;
    let left = members(&cluster, "one").await;
    submit(&cluster, &job("two", 3, 8)).await;
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    until_bound(&cluster, "two", 3).await;
    assert_eq!(members(&cluster, "one").await, left);
    until_running_with(&cluster, "one.job", 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gang_recovered_below_its_minimum_is_refilled_where_it_fits() {
    let Some(cluster) =
        cluster_without_kubelets(4, Setup::bare().with(Part::ControllerManager)).await
    else {
        return;
    };
    let controller = Controller::start(&cluster, &["--leader-elect=false"]);
    submit(&cluster, &shrinking_job("one", 3, 1)).await;
    until_bound(&cluster, "one", 3).await;
    until_running_with(&cluster, "one.job", 3).await;
    controller.kill();
    // The state of a controller that released too many seats: the placement has one of three, and two pods were created
    // again.
    let status = gang_status(&cluster, "one.job").await;
    let kept = status["placement"][0].clone();
    let admin = cluster.client(Role::Admin).await;
    let gangs =
        Api::<kube::api::DynamicObject>::namespaced_with(admin, "default", &Kind::Gang.resource());
    let patch = Patch::Merge(json!({"status": {"placement": [kept], "nodes": 1}}));
    gangs.patch_status("one.job", &PatchParams::default(), &patch).await.expect("a status");
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Admin).await, "default");
    let all = pods.list(&ListParams::default()).await.expect("pods").items;
    let is_lost = |pod: &&Pod| {
        pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) != kept["node"].as_str()
    };
    finish_termination(&cluster, &all.iter().filter(is_lost).cloned().collect::<Vec<_>>()).await;
    cluster
        .until("two pods were made again", async || {
            let all = pods.list(&ListParams::default()).await.ok()?.items;
            let waits = |pod: &&Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_none());
            (all.len() == 3 && all.iter().filter(waits).count() == 2).then_some(())
        })
        .await;
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    until_bound(&cluster, "one", 3).await;
    until_running_with(&cluster, "one.job", 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn job_made_larger_has_its_new_members_bound_together() {
    let Some(cluster) =
        cluster_without_kubelets(3, Setup::bare().with(Part::ControllerManager)).await
    else {
        return;
    };
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    submit(&cluster, &shrinking_job("one", 2, 2)).await;
    until_bound(&cluster, "one", 2).await;
    until_running_with(&cluster, "one.job", 2).await;
    resize_job(&cluster, "one", 4).await;
    until_gang_status(&cluster, "one.job", |status| {
        status["message"]
            .as_str()
            .is_some_and(|message| message.contains("waits for room for 2 more"))
    })
    .await;
    assert_eq!(bound_with_prefix(&cluster, "one").await, 2, "one of two that came later");
    cluster.apply(&node_without_kubelet("n3")).await.expect("a node");
    until_bound(&cluster, "one", 4).await;
    until_running_with(&cluster, "one.job", 4).await;
}

/// A workload whose operator the test plays.
struct PlayedWorkload {
    kind: (&'static str, &'static str, &'static str, &'static str),
    name: &'static str,
    least: u32,
}

impl PlayedWorkload {
    async fn write(&self, cluster: &Cluster, spec: &Value) {
        let (group, version, kind, _) = self.kind;
        let object = json!({
            "apiVersion": format!("{group}/{version}"), "kind": kind,
            "metadata": {"name": self.name, "namespace": "default"}, "spec": spec,
        });
        let text = object.to_string();
        cluster.until("it is written", async || cluster.apply(&text).await.ok()).await;
    }

    async fn make(&self, cluster: &Cluster, pods: &[(String, String)]) {
        let (group, version, kind, _) = self.kind;
        let version = format!("{group}/{version}");
        for (name, labels) in pods {
            let labels = format!("{GANG}: {}, {labels}", self.name);
            let one = pod(name, 8, &labels, &format!("{LEAST}: '{}'", self.least), "");
            let one = with_owner(&one, (&version, kind, self.name));
            cluster.apply(&one).await.expect("a pod");
        }
    }

    /// The owner writes this spec and removes these pods; then a Gang needs all of their nodes and one more. No
    /// remaining member is evicted.
    async fn shrink(
        &self,
        cluster: &Cluster,
        spec: &Value,
        removed: &[(String, String)],
        left: u64,
    ) {
        let gang_name = format!("{}.{}", self.name, self.kind.2.to_lowercase());
        self.write(cluster, spec).await;
        let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Observer).await, "default");
        for (name, _) in removed {
            let pod = pods.get(name).await.expect("it is there");
            finish_termination(cluster, &[pod]).await;
        }
        let stay = members(cluster, self.name).await;
        assert_eq!(stay.len() as u64, left);
        until_running_with(cluster, &gang_name, left).await;
        let rivals = removed.len() as u32 + 1;
        cluster
            .apply(&gang("rival", &format!("min: {rivals}"), rivals, 8, ""))
            .await
            .expect("a gang");
        until_bound(cluster, "rival", rivals as usize).await;
        assert_eq!(members(cluster, self.name).await, stay, "evicted though there was room");
        until_running_with(cluster, &gang_name, left).await;
    }
}

const TORCH: (&str, &str, &str, &str) = ("kubeflow.org", "v1", "PyTorchJob", "pytorchjobs");
const RAY: (&str, &str, &str, &str) = ("ray.io", "v1", "RayCluster", "rayclusters");

fn template() -> Value {
    json!({"spec": {"schedulerName": "muster", "containers": [{"name": "worker", "image": "none",
        "resources": {"limits": {"nvidia.com/gpu": 8}, "requests": {"cpu": 1}}}]}})
}

fn torch_pods(master: u32, workers: u32) -> Vec<(String, String)> {
    let one = |role: &str, at: u32| {
        let labels = format!(
            "training.kubeflow.org/replica-type: {role}, training.kubeflow.org/replica-index: '{at}'"
        );
        (format!("torch-{role}-{at}"), labels)
    };
    let masters = (0..master).map(|at| one("master", at));
    masters.chain((0..workers).map(|at| one("worker", at))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn elastic_workload_made_smaller_loses_no_other_member() {
    let Some(cluster) = kwok_cluster(6).await else { return };
    let (group, version, kind, plural) = TORCH;
    cluster.apply(&crd(group, version, kind, plural, true)).await.expect("a kind");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    let torch = PlayedWorkload { kind: TORCH, name: "torch", least: 2 };
    let spec = |replicas: u32| {
        let worker = json!({"replicas": replicas, "template": template()});
        json!({"elasticPolicy": {"minReplicas": 2, "maxReplicas": 5},
            "pytorchReplicaSpecs": {"Worker": worker}})
    };
    torch.write(&cluster, &spec(5)).await;
    let pods = torch_pods(0, 5);
    torch.make(&cluster, &pods).await;
    until_bound(&cluster, "torch", 5).await;
    until_running_with(&cluster, "torch.pytorchjob", 5).await;
    torch.shrink(&cluster, &spec(2), &pods[2..], 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rigid_workload_of_two_roles_made_smaller_loses_no_other_member() {
    let Some(cluster) = kwok_cluster(5).await else { return };
    let (group, version, kind, plural) = TORCH;
    cluster.apply(&crd(group, version, kind, plural, true)).await.expect("a kind");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    let torch = PlayedWorkload { kind: TORCH, name: "torch", least: 2 };
    let spec = |workers: u32| {
        let of = |replicas: u32| json!({"replicas": replicas, "template": template()});
        json!({"pytorchReplicaSpecs": {"Master": of(1), "Worker": of(workers)}})
    };
    torch.write(&cluster, &spec(3)).await;
    let pods = torch_pods(1, 3);
    torch.make(&cluster, &pods).await;
    until_bound(&cluster, "torch", 4).await;
    until_running_with(&cluster, "torch.pytorchjob", 4).await;
    torch.shrink(&cluster, &spec(1), &pods[2..], 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ray_cluster_made_smaller_loses_no_other_member() {
    let Some(cluster) = kwok_cluster(5).await else { return };
    let (group, version, kind, plural) = RAY;
    cluster.apply(&crd(group, version, kind, plural, true)).await.expect("a kind");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    let ray = PlayedWorkload { kind: RAY, name: "ray", least: 2 };
    let spec = |replicas: u32| {
        json!({
            "headGroupSpec": {"rayStartParams": {}, "template": template()},
            "workerGroupSpecs": [{"groupName": "gpu", "replicas": replicas, "rayStartParams": {},
                "template": template()}],
        })
    };
    ray.write(&cluster, &spec(3)).await;
    let one = |group: &str, kind: &str, at: u32| {
        let labels =
            format!("ray.io/cluster: ray, ray.io/node-type: {kind}, ray.io/group: {group}");
        (format!("ray-{group}-{at}"), labels)
    };
    let workers = (0..3).map(|at| one("gpu", "worker", at));
    let pods: Vec<_> = [one("headgroup", "head", 0)].into_iter().chain(workers).collect();
    ray.make(&cluster, &pods).await;
    until_bound(&cluster, "ray", 4).await;
    until_running_with(&cluster, "ray.raycluster", 4).await;
    ray.shrink(&cluster, &spec(1), &pods[2..], 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gang_with_lowered_bounds_releases_its_last_members() {
    let Some(cluster) = kwok_cluster(5).await else { return };
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply(&gang("train", "min: 3, max: 5", 2, 8, "")).await.expect("a gang");
    until_bound(&cluster, "train", 5).await;
    until_running_with(&cluster, "train", 5).await;
    let first = members(&cluster, "train-worker-0").await;
    cluster.apply(&gang("train", "min: 2, max: 2", 2, 8, "")).await.expect("the same gang");
    until_running_with(&cluster, "train", 2).await;
    cluster.apply(&gang("rival", "min: 3", 3, 8, "")).await.expect("a gang");
    until_bound(&cluster, "rival", 3).await;
    assert_eq!(members(&cluster, "train").await.len(), 2);
    assert_eq!(members(&cluster, "train-worker-0").await, first);
}
