//! Preemption: of whole gangs, with their grace period, back to their queue position, and only when another gang starts
//! by it.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams};
use muster_testkit::cluster::{Cluster, Part, Role, Setup};

use crate::fixture::clusters::{cluster_without_kubelets, kwok_cluster};
use crate::fixture::controller::Controller;
use crate::fixture::deny_policy::{deny_orders, remove_deny_policy};
use crate::fixture::leftovers::remove_jobs;
use crate::fixture::manifests::{HIGH_PRIORITY, gang, job};
use crate::fixture::objects::{until_event, until_gang_status};
use crate::fixture::pods::{
    bound_with_prefix, finish_termination, pods_with_prefix, terminating_pods, until_bound,
};
use crate::observer::ObservedCluster;

/// One queue has a guarantee of two nodes, which the other may borrow.
const QUEUES: &str = "
apiVersion: muster.sh/v1alpha1
kind: Queue
metadata: {name: lender}
spec: {guaranteed: {nvidia.com/gpu: 16}, namespaces: {names: [default]}}
---
apiVersion: muster.sh/v1alpha1
kind: Queue
metadata: {name: borrower}
spec: {namespaces: {names: [default]}}
---
apiVersion: muster.sh/v1alpha1
kind: Queue
metadata: {name: turns}
spec: {timeSlice: 3s, namespaces: {names: [default]}}
";

/// A Job whose pods have this grace period, with more in their spec.
fn with_grace(yaml: &str, seconds: u32, more: &str) -> String {
    let fields = format!("terminationGracePeriodSeconds: {seconds}\n      {more}");
    yaml.replace("restartPolicy: Never", &format!("restartPolicy: Never\n      {fields}"))
}

/// The same in this queue.
fn of_queue(yaml: &str, queue: &str) -> String {
    yaml.replace("labels: {", &format!("labels: {{muster.sh/queue: {queue}, "))
}

/// Nodes without a kubelet, and the controller manager for the pods of Jobs.
async fn cluster_with_jobs(nodes: u32) -> Option<ObservedCluster> {
    cluster_without_kubelets(nodes, Setup::bare().with(Part::ControllerManager)).await
}

/// Asserts that the Job counts no eviction as a failure: more than six failures would end it.
async fn assert_no_failures(cluster: &Cluster, name: &str) {
    let jobs: Api<Job> = Api::namespaced(cluster.client(Role::Observer).await, "default");
    let status = jobs.get(name).await.expect("the job").status.unwrap_or_default();
    assert_eq!(status.failed.unwrap_or(0), 0, "{status:?}");
}

async fn remove_job(cluster: &Cluster, name: &str) {
    let jobs: Api<Job> = Api::namespaced(cluster.client(Role::User).await, "default");
    jobs.delete(name, &DeleteParams::background()).await.expect("removed");
}

#[tokio::test(flavor = "multi_thread")]
async fn reclaimed_gang_has_its_grace_and_keeps_its_queue_position() {
    let Some(cluster) = cluster_with_jobs(2).await else { return };
    cluster.apply(QUEUES).await.expect("queues");
    let controller = Controller::start(&cluster, &["--leader-elect=false"]);
    let guest = with_grace(&of_queue(&job("guest", 8, 2), "borrower"), 40, "");
    cluster.apply_as(Role::User, &guest).await.expect("a job");
    until_bound(&cluster, "guest", 8).await;
    tokio::time::sleep(Duration::from_secs(1)).await; // the server's stamps are whole seconds
    let late = with_grace(&of_queue(&job("late", 8, 2), "borrower"), 0, "");
    cluster.apply_as(Role::User, &late).await.expect("a job");
    until_gang_status(&cluster, "late.job", |status| status["phase"] == "Waiting").await;
    let owner = with_grace(&of_queue(&job("owner", 2, 8), "lender"), 0, "");
    cluster.apply_as(Role::User, &owner).await.expect("a job");
    let evicted_pods = cluster
        .until("all pods of the guest are terminating", async || {
            Some(terminating_pods(&cluster, "guest").await).filter(|leaving| leaving.len() == 8)
        })
        .await;
    for pod in &evicted_pods {
        assert_eq!(pod.metadata.deletion_grace_period_seconds, Some(40), "{}", pod.name_any());
        let status = pod.status.clone().unwrap_or_default();
        let target = |one: &&_| is_target(one);
        assert!(status.conditions.iter().flatten().any(|one| target(&one)), "{}", pod.name_any());
    }
    until_event(&cluster, "guest.job", "Stopping", "what its queue had lent").await;
    // The grace period holds, and no pod is bound before the last victim is gone, also under the next leader.
    controller.kill();
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    finish_termination(&cluster, &evicted_pods[..7]).await;
    until_gang_status(&cluster, "owner.job", |status| status["phase"] == "Provisioning").await;
    assert_eq!(bound_with_prefix(&cluster, "owner").await, 0);
    finish_termination(&cluster, &evicted_pods[7..]).await;
    until_bound(&cluster, "owner", 2).await;
    // Its Job has created its pods again; the gang waits before the one that came later.
    until_gang_status(&cluster, "guest.job", |status| {
        status["phase"] == "Waiting" && status["position"] == 1
    })
    .await;
    assert_eq!(bound_with_prefix(&cluster, "guest").await, 0);
    assert_no_failures(&cluster, "guest").await;
    remove_job(&cluster, "owner").await;
    until_bound(&cluster, "guest", 8).await;
    assert_eq!(bound_with_prefix(&cluster, "late").await, 0);
    assert_eq!(cluster.observer().evicted("guest"), 8);
}

fn is_target(one: &k8s_openapi::api::core::v1::PodCondition) -> bool {
    one.type_ == "DisruptionTarget" && one.status == "True"
}

#[tokio::test(flavor = "multi_thread")]
async fn higher_priority_preempts_one_whole_gang_exactly_once() {
    let Some(cluster) = cluster_with_jobs(3).await else { return };
    cluster.apply(HIGH_PRIORITY).await.expect("a class");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    for (name, pods) in [("two", 2), ("one", 1)] {
        let low = with_grace(&job(name, pods, 8), 0, "");
        cluster.apply_as(Role::User, &low).await.expect("a job");
        until_bound(&cluster, name, pods as usize).await;
    }
    // Two nodes are needed: the gang of two is preempted whole, and not half of it beside the other.
    let high = with_grace(&job("high", 2, 8), 0, "priorityClassName: high");
    cluster.apply_as(Role::User, &high).await.expect("a job");
    until_bound(&cluster, "high", 2).await;
    until_event(&cluster, "two.job", "Stopping", "default/high.job of higher priority").await;
    until_gang_status(&cluster, "two.job", |status| status["phase"] == "Waiting").await;
    assert_eq!(
        (bound_with_prefix(&cluster, "two").await, bound_with_prefix(&cluster, "one").await),
        (0, 1)
    );
    cluster
        .until("its Job has made both again", async || {
            (pods_with_prefix(&cluster, "two").await.len() == 2).then_some(())
        })
        .await;
    // No gang of equal priority is preempted for it, however long it waits.
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(cluster.observer().evicted("two"), 2);
    assert_eq!((cluster.observer().evicted("one"), cluster.observer().evicted("high")), (0, 0));
    assert_no_failures(&cluster, "two").await;
    remove_job(&cluster, "high").await;
    until_bound(&cluster, "two", 2).await;
    assert_eq!(cluster.observer().evicted("two"), 2);
    remove_jobs(&cluster).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn order_the_api_server_refuses_evicts_no_pod() {
    let Some(cluster) = cluster_with_jobs(1).await else { return };
    cluster.apply(HIGH_PRIORITY).await.expect("a class");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    let low = with_grace(&job("low", 2, 4), 0, "");
    cluster.apply_as(Role::User, &low).await.expect("a job");
    until_bound(&cluster, "low", 2).await;
    deny_orders(&cluster).await;
    let high = with_grace(&job("high", 2, 4), 0, "priorityClassName: high");
    cluster.apply_as(Role::User, &high).await.expect("a job");
    let refused = "the Order could not be stored: refused";
    until_event(&cluster, "high.job", "OrderRolledBack", refused).await;
    assert_eq!(cluster.observer().evicted("low"), 0);
    // The controller retries by itself.
    remove_deny_policy(&cluster).await;
    until_bound(&cluster, "high", 2).await;
    assert_eq!(cluster.observer().evicted("low"), 2);
    assert_no_failures(&cluster, "low").await;
    remove_jobs(&cluster).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gangs_of_a_queue_with_time_slices_take_turns() {
    let Some(cluster) = kwok_cluster(1).await else { return };
    cluster.apply(QUEUES).await.expect("queues");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    // A gang that checkpoints on a signal loses no work by a time slice.
    let more = "queue: turns\n  disruption: {grace: 1s, checkpoint: {signal: SIGUSR1}}";
    for name in ["left", "right"] {
        cluster.apply(&gang(name, "min: 2", 2, 4, more)).await.expect("a gang");
    }
    for name in ["left", "right", "left", "right"] {
        until_bound(&cluster, name, 2).await;
    }
    until_event(&cluster, "left", "Stopping", "and default/right is next").await;
}
