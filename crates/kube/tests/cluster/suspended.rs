//! Jobs that are suspended until there is room for all of them: planned before a pod exists, let run, and stopped by
//! being suspended again.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use muster_kube::objects::NodeClaim;
use muster_testkit::cluster::{Cluster, Part, Role, Setup};
use serde_json::json;

use crate::controller::Controller;
use crate::gates::{node_of, planned, pods_of, until_bound};
use crate::leftovers::{done, remove_jobs, until_none_are_left};
use crate::observer::Observed;
use crate::refusal::{allow, refuse};
use crate::stage::{self, bound_of, until_claims};
use crate::words::{HIGH, POOL, job, pod};

/// The same Job, suspended until Muster has room for it. Its pods end at once when they are told to.
fn suspended(yaml: &str) -> String {
    yaml.replace(
        ", namespace: default}",
        ", namespace: default, annotations: {muster.sh/admit: unsuspend}}",
    )
    .replace("\nspec:\n", "\nspec:\n  suspend: true\n")
    .replace("restartPolicy: Never", "restartPolicy: Never\n      terminationGracePeriodSeconds: 0")
}

/// The same for the stock scheduler.
fn others(yaml: &str) -> String {
    yaml.replace("schedulerName: muster", "schedulerName: default-scheduler")
}

/// Nodes whose pods do not end by themselves, and those who make jobs' pods and bind them.
async fn still(nodes: u32) -> Option<Observed> {
    stage::still(nodes, Setup::bare().with(Part::ControllerManager).with(Part::Scheduler)).await
}

async fn is_suspended(cluster: &Cluster, name: &str) -> bool {
    let jobs: Api<Job> = Api::namespaced(cluster.client(Role::Observer).await, "default");
    let spec = jobs.get(name).await.ok().and_then(|job| job.spec);
    spec.and_then(|spec| spec.suspend) == Some(true)
}

/// How many pods of these are on each node.
async fn by_node(cluster: &Cluster, begin: &str) -> BTreeMap<String, i64> {
    let mut there = BTreeMap::new();
    for pod in pods_of(cluster, begin).await {
        *there.entry(node_of(&pod).unwrap_or_default().to_owned()).or_default() += 1;
    }
    there
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_job_has_its_nodes_before_its_first_pod() {
    let Some(cluster) = stage::cluster().await else { return };
    cluster.apply(POOL).await.expect("a pool");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply_as(Role::User, &suspended(&job("train", 4, 8))).await.expect("a job");
    let claims: Api<NodeClaim> = Api::all(cluster.client(Role::Observer).await);
    until_claims(&cluster, 4).await;
    cluster
        .until("its pods are made", async || {
            // Whoever makes a pod does it when every node is there.
            let pods = pods_of(&cluster, "train").await.len();
            let all = claims.list(&ListParams::default()).await.ok()?.items;
            assert!(pods == 0 || all.iter().all(NodeClaim::is_registered), "{pods} pods too early");
            (pods > 0).then_some(())
        })
        .await;
    until_bound(&cluster, "train", 4).await;
    assert_eq!(by_node(&cluster, "train").await.len(), 4, "one on each of the nodes");
    cluster.until("it is done", async || (done(&cluster).await == 1).then_some(())).await;
    remove_jobs(&cluster).await;
    until_none_are_left(&cluster).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_scheduler_binds_of_a_job_is_counted_once_and_where_it_is() {
    let Some(cluster) = still(2).await else { return };
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply(&others(&suspended(&job("large", 5, 4)))).await.expect("a job that does not fit");
    cluster.apply(&others(&suspended(&job("theirs", 2, 4)))).await.expect("a job");
    until_bound(&cluster, "theirs", 2).await;
    assert!(is_suspended(&cluster, "large").await);
    cluster
        .until("the gang is known where it is", async || {
            (planned(&cluster, "theirs.job").await == by_node(&cluster, "theirs").await)
                .then_some(())
        })
        .await;
    // Sixteen GPUs: eight are taken, and not sixteen; then all are, and not eight.
    cluster.apply(&job("more", 2, 4)).await.expect("a second job");
    until_bound(&cluster, "more", 2).await;
    cluster.apply(&job("third", 1, 4)).await.expect("a third job");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(bound_of(&cluster, "third").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_makes_way_is_suspended_again_and_comes_back() {
    let Some(cluster) = still(1).await else { return };
    cluster.apply(HIGH).await.expect("a class");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply(&suspended(&job("low", 2, 4))).await.expect("a job");
    until_bound(&cluster, "low", 2).await;
    assert_eq!(planned(&cluster, "low.job").await, by_node(&cluster, "low").await);
    let first: Vec<_> =
        pods_of(&cluster, "low").await.into_iter().map(|pod| pod.metadata.uid).collect();
    let high =
        pod("high", 8, "", "", "priorityClassName: high\n  terminationGracePeriodSeconds: 0");
    cluster.apply(&high).await.expect("a pod");
    until_bound(&cluster, "high", 1).await;
    assert!(is_suspended(&cluster, "low").await);
    assert_eq!(pods_of(&cluster, "low").await.len(), 0);
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Admin).await, "default");
    pods.delete("high", &DeleteParams::default()).await.expect("deleted");
    until_bound(&cluster, "low", 2).await;
    assert!(pods_of(&cluster, "low").await.iter().all(|pod| !first.contains(&pod.metadata.uid)));
}

/// Whether a Job could be let run now.
async fn may_run(cluster: &Cluster, name: &str) -> bool {
    let jobs: Api<Job> = Api::namespaced(cluster.client(Role::Admin).await, "default");
    let patch = Patch::Merge(json!({"spec": {"suspend": false}}));
    let dry = PatchParams { dry_run: true, ..PatchParams::default() };
    jobs.patch(name, &dry, &patch).await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_killed_before_it_lets_a_job_run_does_so_when_it_is_back() {
    let Some(cluster) = still(1).await else { return };
    refuse(&cluster, ("batch", "jobs"), "late", "object.spec.suspend == true").await;
    // Somebody who was there before it and was held back until now would be first in line, were nothing written down.
    let first = pod("first", 8, "", "", "schedulingGates: [{name: example.com/wait}]");
    cluster.apply(&first).await.expect("a pod");
    tokio::time::sleep(Duration::from_secs(1)).await; // the server's stamps are whole seconds
    cluster.apply(&suspended(&job("late", 2, 4))).await.expect("a job");
    cluster
        .until("the policy holds", async || (!may_run(&cluster, "late").await).then_some(()))
        .await;
    let controller = Controller::start(&cluster, &["--leader-elect=false"]);
    let where_to = cluster
        .until("it is written down where it goes", async || {
            Some(planned(&cluster, "late.job").await).filter(|planned| !planned.is_empty())
        })
        .await;
    controller.kill();
    assert!(is_suspended(&cluster, "late").await);
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Admin).await, "default");
    let patch = Patch::Merge(json!({"spec": {"schedulingGates": null}}));
    pods.patch("first", &PatchParams::default(), &patch).await.expect("let go");
    allow(&cluster).await;
    cluster
        .until("the policy is gone", async || may_run(&cluster, "late").await.then_some(()))
        .await;
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    until_bound(&cluster, "late", 2).await;
    assert_eq!(by_node(&cluster, "late").await, where_to);
    assert_eq!(bound_of(&cluster, "first").await, 0);
}
