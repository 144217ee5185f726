//! Suspended Jobs: placed before a pod exists, unsuspended, and preempted by being suspended again.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use muster_kube::objects::NodeClaim;
use muster_testkit::cluster::{Cluster, Part, Role, Setup};
use serde_json::json;

use crate::fixture::clusters::{cluster_without_kubelets, karpenter_cluster};
use crate::fixture::controller::Controller;
use crate::fixture::deny_policy::{deny_updates_unless, remove_deny_policy};
use crate::fixture::leftovers::{completed_jobs, remove_jobs, until_no_leftovers};
use crate::fixture::manifests::{HIGH_PRIORITY, POOL, job, pod};
use crate::fixture::objects::{placement_of, until_node_claims};
use crate::fixture::pods::{bound_with_prefix, node_of, pods_with_prefix, until_bound};
use crate::observer::ObservedCluster;

/// The same Job, suspended until Muster has room for it. Its pods have no grace period.
fn suspended(yaml: &str) -> String {
    yaml.replace(
        ", namespace: default}",
        ", namespace: default, annotations: {muster.sh/admit: unsuspend}}",
    )
    .replace("\nspec:\n", "\nspec:\n  suspend: true\n")
    .replace("restartPolicy: Never", "restartPolicy: Never\n      terminationGracePeriodSeconds: 0")
}

/// The same for the stock scheduler.
fn with_stock_scheduler(yaml: &str) -> String {
    yaml.replace("schedulerName: muster", "schedulerName: default-scheduler")
}

/// Nodes without a kubelet, the controller manager and the stock kube-scheduler.
async fn cluster_with_stock_parts(nodes: u32) -> Option<ObservedCluster> {
    cluster_without_kubelets(
        nodes,
        Setup::bare().with(Part::ControllerManager).with(Part::Scheduler),
    )
    .await
}

async fn is_suspended(cluster: &Cluster, name: &str) -> bool {
    let jobs: Api<Job> = Api::namespaced(cluster.client(Role::Observer).await, "default");
    let spec = jobs.get(name).await.ok().and_then(|job| job.spec);
    spec.and_then(|spec| spec.suspend) == Some(true)
}

/// How many pods with this prefix are on each node.
async fn by_node(cluster: &Cluster, prefix: &str) -> BTreeMap<String, i64> {
    let mut there = BTreeMap::new();
    for pod in pods_with_prefix(cluster, prefix).await {
        *there.entry(node_of(&pod).unwrap_or_default().to_owned()).or_default() += 1;
    }
    there
}

#[tokio::test(flavor = "multi_thread")]
async fn suspended_job_has_its_nodes_before_its_first_pod() {
    let Some(cluster) = karpenter_cluster().await else { return };
    cluster.apply(POOL).await.expect("a pool");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply_as(Role::User, &suspended(&job("train", 4, 8))).await.expect("a job");
    let claims: Api<NodeClaim> = Api::all(cluster.client(Role::Observer).await);
    until_node_claims(&cluster, 4).await;
    cluster
        .until("its pods are made", async || {
            // No pod may exist before every node is registered.
            let pods = pods_with_prefix(&cluster, "train").await.len();
            let all = claims.list(&ListParams::default()).await.ok()?.items;
            assert!(pods == 0 || all.iter().all(NodeClaim::is_registered), "{pods} pods too early");
            (pods > 0).then_some(())
        })
        .await;
    until_bound(&cluster, "train", 4).await;
    assert_eq!(by_node(&cluster, "train").await.len(), 4, "one on each of the nodes");
    cluster.until("it is done", async || (completed_jobs(&cluster).await == 1).then_some(())).await;
    remove_jobs(&cluster).await;
    until_no_leftovers(&cluster).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_bound_by_another_scheduler_count_once_on_their_node() {
    let Some(cluster) = cluster_with_stock_parts(2).await else { return };
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster
        .apply(&with_stock_scheduler(&suspended(&job("large", 5, 4))))
        .await
        .expect("a job that does not fit");
    cluster.apply(&with_stock_scheduler(&suspended(&job("theirs", 2, 4)))).await.expect("a job");
    until_bound(&cluster, "theirs", 2).await;
    assert!(is_suspended(&cluster, "large").await);
    cluster
        .until("the gang is known where it is", async || {
            (placement_of(&cluster, "theirs.job").await == by_node(&cluster, "theirs").await)
                .then_some(())
        })
        .await;
    // Sixteen GPUs: eight are used, and not sixteen; then all are, and not eight.
    cluster.apply(&job("more", 2, 4)).await.expect("a second job");
    until_bound(&cluster, "more", 2).await;
    cluster.apply(&job("third", 1, 4)).await.expect("a third job");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(bound_with_prefix(&cluster, "third").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn preempted_job_is_suspended_again_and_resumes() {
    let Some(cluster) = cluster_with_stock_parts(1).await else { return };
    cluster.apply(HIGH_PRIORITY).await.expect("a class");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply(&suspended(&job("low", 2, 4))).await.expect("a job");
    until_bound(&cluster, "low", 2).await;
    assert_eq!(placement_of(&cluster, "low.job").await, by_node(&cluster, "low").await);
    let first: Vec<_> =
        pods_with_prefix(&cluster, "low").await.into_iter().map(|pod| pod.metadata.uid).collect();
    let high =
        pod("high", 8, "", "", "priorityClassName: high\n  terminationGracePeriodSeconds: 0");
    cluster.apply(&high).await.expect("a pod");
    until_bound(&cluster, "high", 1).await;
    assert!(is_suspended(&cluster, "low").await);
    assert_eq!(pods_with_prefix(&cluster, "low").await.len(), 0);
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Admin).await, "default");
    pods.delete("high", &DeleteParams::default()).await.expect("deleted");
    until_bound(&cluster, "low", 2).await;
    assert!(
        pods_with_prefix(&cluster, "low")
            .await
            .iter()
            .all(|pod| !first.contains(&pod.metadata.uid))
    );
}

/// Whether the API server would allow a Job to be unsuspended, by a dry run.
async fn may_be_unsuspended(cluster: &Cluster, name: &str) -> bool {
    let jobs: Api<Job> = Api::namespaced(cluster.client(Role::Admin).await, "default");
    let patch = Patch::Merge(json!({"spec": {"suspend": false}}));
    let dry = PatchParams { dry_run: true, ..PatchParams::default() };
    jobs.patch(name, &dry, &patch).await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn controller_killed_before_unsuspending_a_job_does_it_later() {
    let Some(cluster) = cluster_with_stock_parts(1).await else { return };
    deny_updates_unless(&cluster, ("batch", "jobs"), "late", "object.spec.suspend == true").await;
    // A pod that is older and was gated until now would be first in the queue, if no placement were stored.
    let first = pod("first", 8, "", "", "schedulingGates: [{name: example.com/wait}]");
    cluster.apply(&first).await.expect("a pod");
    tokio::time::sleep(Duration::from_secs(1)).await; // the server's stamps are whole seconds
    cluster.apply(&suspended(&job("late", 2, 4))).await.expect("a job");
    cluster
        .until("the policy holds", async || {
            (!may_be_unsuspended(&cluster, "late").await).then_some(())
        })
        .await;
    let controller = Controller::start(&cluster, &["--leader-elect=false"]);
    let where_to = cluster
        .until("it is written down where it goes", async || {
            Some(placement_of(&cluster, "late.job").await).filter(|planned| !planned.is_empty())
        })
        .await;
    controller.kill();
    assert!(is_suspended(&cluster, "late").await);
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Admin).await, "default");
    let patch = Patch::Merge(json!({"spec": {"schedulingGates": null}}));
    pods.patch("first", &PatchParams::default(), &patch).await.expect("ungated");
    remove_deny_policy(&cluster).await;
    cluster
        .until("the policy is gone", async || {
            may_be_unsuspended(&cluster, "late").await.then_some(())
        })
        .await;
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    until_bound(&cluster, "late", 2).await;
    assert_eq!(by_node(&cluster, "late").await, where_to);
    assert_eq!(bound_with_prefix(&cluster, "first").await, 0);
}
