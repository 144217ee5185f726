//! Two replicas: one leads, the other takes over, and never both lead.

use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, Patch, PatchParams};
use muster_testkit::cluster::{Cluster, Role};
use serde_json::json;

use crate::fixture::clusters::kwok_cluster;
use crate::fixture::controller::Controller;
use crate::fixture::manifests::{gang, pod};
use crate::fixture::objects::until_event;
use crate::fixture::pods::bound_with_prefix;
use crate::fixture::proxy::Proxy;

fn replica(cluster: &Cluster, name: &str) -> Controller {
    Controller::start(cluster, &["--identity", name, "--lease-duration", "3s"])
}

async fn holder(cluster: &Cluster) -> Option<String> {
    let leases: Api<Lease> = Api::namespaced(cluster.client(Role::Admin).await, "muster-system");
    let lease = leases.get_opt("muster").await.ok()??;
    // The suffix after the name is different for every process.
    let holder = lease.spec?.holder_identity?;
    holder.rsplit_once('_').map(|(name, _)| name.to_owned())
}

async fn until_holds_lease(cluster: &Cluster, name: &str) {
    let what = format!("{name} holds the lease");
    cluster
        .until(&what, async || (holder(cluster).await.as_deref() == Some(name)).then_some(()))
        .await;
}

/// Waits until a new pod is bound, which only a leader does.
async fn assert_schedules(cluster: &Cluster, name: &str) {
    cluster.apply(&pod(name, 1, "", "", "")).await.expect("a pod");
    let what = format!("{name} is bound");
    cluster
        .until(&what, async || (bound_with_prefix(cluster, name).await == 1).then_some(()))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn standby_takes_over_when_the_leader_is_killed_or_stopped() {
    let Some(cluster) = kwok_cluster(2).await else { return };
    let first = replica(&cluster, "first");
    until_holds_lease(&cluster, "first").await;
    let second = replica(&cluster, "second");
    assert_schedules(&cluster, "one").await;
    assert_eq!(holder(&cluster).await.as_deref(), Some("first"));
    // A killed leader cannot release the lease: the other waits until it expires.
    first.kill();
    until_holds_lease(&cluster, "second").await;
    assert_schedules(&cluster, "two").await;
    // A stopped leader releases the lease: the other does not wait.
    let third = replica(&cluster, "third");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let reported = std::time::Instant::now();
    assert!(second.stop(), "it ends in good order");
    until_holds_lease(&cluster, "third").await;
    eprintln!("handed over within {:?}", reported.elapsed());
    assert_schedules(&cluster, "three").await;
    drop(third);
}

/// Gives the lease to another replica, which does nothing.
async fn take_lease(cluster: &Cluster) {
    let leases: Api<Lease> = Api::namespaced(cluster.client(Role::Admin).await, "muster-system");
    let other = json!({"spec": {"holderIdentity": "other_1", "leaseDurationSeconds": 3_600}});
    leases.patch("muster", &PatchParams::default(), &Patch::Merge(&other)).await.expect("taken");
}

#[tokio::test(flavor = "multi_thread")]
async fn paused_leader_with_unbound_pods_writes_nothing_after_it_resumes() {
    let Some(cluster) = kwok_cluster(25).await else { return };
    let proxy = Proxy::start(&cluster, 1).await;
    let all: String = (0..200).map(|at| pod(&format!("p{at}"), 1, "", "", "")).collect();
    cluster.apply(&all).await.expect("pods");
    let mut first = Controller::start_through(&proxy, &cluster, &["--lease-duration", "3s"]);
    // The process is stopped in the middle of the bindings.
    while proxy.bindings().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    first.pause();
    let bound_before = proxy.bindings().len();
    assert!(bound_before < 200, "it was too fast to be paused in the middle");
    tokio::time::sleep(Duration::from_secs(4)).await;
    take_lease(&cluster).await;
    let resumed = Instant::now();
    first.resume();
    cluster.until("the first has ended", async || first.has_ended().then_some(())).await;
    let wrote = proxy.requests_since(resumed).into_iter().filter(|requests| requests.verb.writes());
    let wrote: Vec<String> = wrote.map(|requests| requests.path).collect();
    assert_eq!(wrote, Vec::<String>::new());
    assert!(!first.succeeded(), "it ends with an error");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_with_one_name_never_both_lead() {
    let Some(cluster) = kwok_cluster(2).await else { return };
    let mut both = ["same"; 2].map(|name| replica(&cluster, name));
    until_holds_lease(&cluster, "same").await;
    assert_schedules(&cluster, "one").await;
    // Three times as long as a lease lasts.
    tokio::time::sleep(Duration::from_secs(9)).await;
    let leads = |one: &Controller| one.log().contains("this replica leads now");
    assert_eq!(both.iter().filter(|one| leads(one)).count(), 1);
    both.sort_by_key(|one| !leads(one));
    let [leader, other] = both;
    leader.kill();
    cluster.until("the other leads", async || leads(&other).then_some(())).await;
    assert_schedules(&cluster, "two").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leader_that_hangs_loses_the_lease_and_ends_with_an_error() {
    let Some(cluster) = kwok_cluster(2).await else { return };
    let stalls = ["--identity", "first", "--lease-duration", "3s", "--stall-timeout", "15s"];
    let fault = ["--fault", "stall:default/stuck.pod"];
    let mut first = Controller::start(&cluster, &[&stalls[..], &fault].concat());
    until_holds_lease(&cluster, "first").await;
    assert_schedules(&cluster, "one").await;
    cluster.apply(&pod("stuck", 1, "", "", "")).await.expect("a pod");
    cluster.until("the first has ended", async || first.has_ended().then_some(())).await;
    assert!(first.log().contains("the decision loop makes no progress"), "{}", first.log());
    assert!(!first.succeeded(), "it ends with an error");
    // Its lease was not released, and has expired.
    let second = replica(&cluster, "second");
    until_holds_lease(&cluster, "second").await;
    cluster
        .until("it is bound", async || {
            (bound_with_prefix(&cluster, "stuck").await == 1).then_some(())
        })
        .await;
    drop(second);
}

#[tokio::test(flavor = "multi_thread")]
async fn gangs_that_make_the_controller_panic_stop_no_other() {
    let Some(cluster) = kwok_cluster(4).await else { return };
    let faults = ["--fault", "panic:default/bad", "--fault", "plan:default/worse"];
    let mut controller =
        Controller::start(&cluster, &[&["--leader-elect=false"], &faults[..]].concat());
    cluster.apply(&gang("before", "min: 2", 2, 4, "")).await.expect("a gang");
    cluster
        .until("it runs", async || (bound_with_prefix(&cluster, "before").await == 2).then_some(()))
        .await;
    for name in ["bad", "worse"] {
        cluster.apply(&gang(name, "min: 1", 1, 8, "")).await.expect("a gang");
    }
    cluster.apply(&gang("after", "min: 2", 2, 8, "")).await.expect("a gang");
    cluster
        .until("it runs", async || (bound_with_prefix(&cluster, "after").await == 2).then_some(()))
        .await;
    until_event(&cluster, "bad", "LeftOut", "caused an internal error").await;
    until_event(&cluster, "worse", "LeftOut", "caused an internal error").await;
    assert_eq!(bound_with_prefix(&cluster, "before").await, 2);
    assert_eq!(
        bound_with_prefix(&cluster, "bad").await + bound_with_prefix(&cluster, "worse").await,
        0
    );
    assert!(!controller.has_ended(), "{}", controller.log());
}
