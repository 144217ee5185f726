//! Gangs that make way: whole, with their time to end, back to their place in line, and only as often as somebody starts
//! by it.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams};
use muster_testkit::cluster::{Cluster, Part, Role, Setup};

use crate::controller::Controller;
use crate::gates::{pods_of, until_bound};
use crate::leftovers::remove_jobs;
use crate::observer::Observed;
use crate::refusal::{allow, refuse_orders};
use crate::stage::{bound_of, leaving, let_end, small_cluster, still, until_event, until_told};
use crate::words::{HIGH, gang, job};

/// One queue can count on two nodes, and the other uses them until they are wanted.
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

/// A Job whose pods have so many seconds to end, with more in their spec.
fn with_grace(yaml: &str, seconds: u32, more: &str) -> String {
    let fields = format!("terminationGracePeriodSeconds: {seconds}\n      {more}");
    yaml.replace("restartPolicy: Never", &format!("restartPolicy: Never\n      {fields}"))
}

/// The same in this queue.
fn of_queue(yaml: &str, queue: &str) -> String {
    yaml.replace("labels: {", &format!("labels: {{muster.sh/queue: {queue}, "))
}

/// Nodes whose pods end when the test says so, and those who make jobs' pods.
async fn jobs_on(nodes: u32) -> Option<Observed> {
    still(nodes, Setup::bare().with(Part::ControllerManager)).await
}

/// Nobody was sent away in a way that its Job takes for a failure: more than six of those end a Job.
async fn has_no_failures(cluster: &Cluster, name: &str) {
    let jobs: Api<Job> = Api::namespaced(cluster.client(Role::Observer).await, "default");
    let status = jobs.get(name).await.expect("the job").status.unwrap_or_default();
    assert_eq!(status.failed.unwrap_or(0), 0, "{status:?}");
}

async fn remove_job(cluster: &Cluster, name: &str) {
    let jobs: Api<Job> = Api::namespaced(cluster.client(Role::User).await, "default");
    jobs.delete(name, &DeleteParams::background()).await.expect("removed");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_queue_has_lent_comes_back_with_grace_and_who_had_it_keeps_its_place() {
    let Some(cluster) = jobs_on(2).await else { return };
    cluster.apply(QUEUES).await.expect("queues");
    let controller = Controller::start(&cluster, &["--leader-elect=false"]);
    let guest = with_grace(&of_queue(&job("guest", 8, 2), "borrower"), 40, "");
    cluster.apply_as(Role::User, &guest).await.expect("a job");
    until_bound(&cluster, "guest", 8).await;
    tokio::time::sleep(Duration::from_secs(1)).await; // the server's stamps are whole seconds
    let late = with_grace(&of_queue(&job("late", 8, 2), "borrower"), 0, "");
    cluster.apply_as(Role::User, &late).await.expect("a job");
    until_told(&cluster, "late.job", |status| status["phase"] == "Waiting").await;
    let owner = with_grace(&of_queue(&job("owner", 2, 8), "lender"), 0, "");
    cluster.apply_as(Role::User, &owner).await.expect("a job");
    let told = cluster
        .until("all of the guest are told to go", async || {
            Some(leaving(&cluster, "guest").await).filter(|leaving| leaving.len() == 8)
        })
        .await;
    for pod in &told {
        assert_eq!(pod.metadata.deletion_grace_period_seconds, Some(40), "{}", pod.name_any());
        let status = pod.status.clone().unwrap_or_default();
        let target = |one: &&_| is_target(one);
        assert!(status.conditions.iter().flatten().any(|one| target(&one)), "{}", pod.name_any());
    }
    until_event(&cluster, "guest.job", "Stopping", "what its queue had lent").await;
    // They have their time, and nobody takes their place before the last is gone, whoever leads.
    controller.kill();
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    let_end(&cluster, &told[..7]).await;
    until_told(&cluster, "owner.job", |status| status["phase"] == "Provisioning").await;
    assert_eq!(bound_of(&cluster, "owner").await, 0);
    let_end(&cluster, &told[7..]).await;
    until_bound(&cluster, "owner", 2).await;
    // Its Job has made its pods again; they wait as a whole, before the one who came later.
    until_told(&cluster, "guest.job", |status| {
        status["phase"] == "Waiting" && status["position"] == 1
    })
    .await;
    assert_eq!(bound_of(&cluster, "guest").await, 0);
    has_no_failures(&cluster, "guest").await;
    remove_job(&cluster, "owner").await;
    until_bound(&cluster, "guest", 8).await;
    assert_eq!(bound_of(&cluster, "late").await, 0);
    assert_eq!(cluster.observer().sent_away("guest"), 8);
}

fn is_target(one: &k8s_openapi::api::core::v1::PodCondition) -> bool {
    one.type_ == "DisruptionTarget" && one.status == "True"
}

#[tokio::test(flavor = "multi_thread")]
async fn a_higher_priority_stops_one_whole_gang_once_and_rivals_leave_each_other_alone() {
    let Some(cluster) = jobs_on(3).await else { return };
    cluster.apply(HIGH).await.expect("a class");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    for (name, pods) in [("two", 2), ("one", 1)] {
        let low = with_grace(&job(name, pods, 8), 0, "");
        cluster.apply_as(Role::User, &low).await.expect("a job");
        until_bound(&cluster, name, pods as usize).await;
    }
    // Two nodes are wanted: one whole gang of two makes way, and not half of it beside the other.
    let high = with_grace(&job("high", 2, 8), 0, "priorityClassName: high");
    cluster.apply_as(Role::User, &high).await.expect("a job");
    until_bound(&cluster, "high", 2).await;
    until_event(&cluster, "two.job", "Stopping", "default/high.job of higher priority").await;
    until_told(&cluster, "two.job", |status| status["phase"] == "Waiting").await;
    assert_eq!((bound_of(&cluster, "two").await, bound_of(&cluster, "one").await), (0, 1));
    cluster
        .until("its Job has made both again", async || {
            (pods_of(&cluster, "two").await.len() == 2).then_some(())
        })
        .await;
    // Nobody of equal priority is stopped for it, however long it waits.
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(cluster.observer().sent_away("two"), 2);
    assert_eq!((cluster.observer().sent_away("one"), cluster.observer().sent_away("high")), (0, 0));
    has_no_failures(&cluster, "two").await;
    remove_job(&cluster, "high").await;
    until_bound(&cluster, "two", 2).await;
    assert_eq!(cluster.observer().sent_away("two"), 2);
    remove_jobs(&cluster).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_disturbed_for_an_order_that_the_server_refuses() {
    let Some(cluster) = jobs_on(1).await else { return };
    cluster.apply(HIGH).await.expect("a class");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    let low = with_grace(&job("low", 2, 4), 0, "");
    cluster.apply_as(Role::User, &low).await.expect("a job");
    until_bound(&cluster, "low", 2).await;
    refuse_orders(&cluster).await;
    let high = with_grace(&job("high", 2, 4), 0, "priorityClassName: high");
    cluster.apply_as(Role::User, &high).await.expect("a job");
    let refused = "it could not be written down: refused";
    until_event(&cluster, "high.job", "OrderRolledBack", refused).await;
    assert_eq!(cluster.observer().sent_away("low"), 0);
    // It tries again by itself.
    allow(&cluster).await;
    until_bound(&cluster, "high", 2).await;
    assert_eq!(cluster.observer().sent_away("low"), 2);
    has_no_failures(&cluster, "low").await;
    remove_jobs(&cluster).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gangs_of_a_queue_with_time_slices_take_turns() {
    let Some(cluster) = small_cluster(1).await else { return };
    cluster.apply(QUEUES).await.expect("queues");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    // Who saves its work when told loses nothing by a turn.
    let more = "queue: turns\n  disruption: {grace: 1s, checkpoint: {signal: SIGUSR1}}";
    for name in ["left", "right"] {
        cluster.apply(&gang(name, "min: 2", 2, 4, more)).await.expect("a gang");
    }
    for name in ["left", "right", "left", "right"] {
        until_bound(&cluster, name, 2).await;
    }
    until_event(&cluster, "left", "Stopping", "it is the turn of default/right").await;
}
