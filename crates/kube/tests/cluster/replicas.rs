//! Two replicas: one acts, the other takes over, and never both.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::Api;
use muster_testkit::cluster::{Cluster, Role};

use crate::controller::Controller;
use crate::stage::{bound_of, small_cluster};
use crate::words::pod;

fn replica(cluster: &Cluster, name: &str) -> Controller {
    Controller::start(cluster, &["--identity", name, "--lease-seconds", "3"])
}

async fn holder(cluster: &Cluster) -> Option<String> {
    let leases: Api<Lease> = Api::namespaced(cluster.client(Role::Admin).await, "muster-system");
    let lease = leases.get_opt("muster").await.ok()??;
    lease.spec?.holder_identity.filter(|holder| !holder.is_empty())
}

async fn holds(cluster: &Cluster, name: &str) {
    let what = format!("{name} holds the lease");
    cluster
        .until(&what, async || (holder(cluster).await.as_deref() == Some(name)).then_some(()))
        .await;
}

/// Has a pod bound, which only a leader does.
async fn is_served(cluster: &Cluster, name: &str) {
    cluster.apply(&pod(name, 1, "", "", "")).await.expect("a pod");
    let what = format!("{name} is bound");
    cluster.until(&what, async || (bound_of(cluster, name).await == 1).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_replica_takes_over_from_one_that_is_killed_or_told_to_go() {
    let Some(cluster) = small_cluster(2).await else { return };
    let first = replica(&cluster, "first");
    holds(&cluster, "first").await;
    let second = replica(&cluster, "second");
    is_served(&cluster, "one").await;
    assert_eq!(holder(&cluster).await.as_deref(), Some("first"));
    // Killed, it cannot give the lease up: the other waits until it has run out.
    first.kill();
    holds(&cluster, "second").await;
    is_served(&cluster, "two").await;
    // Told to go, it hands over: nobody waits.
    let third = replica(&cluster, "third");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let told = std::time::Instant::now();
    assert!(second.stop(), "it ends in good order");
    holds(&cluster, "third").await;
    eprintln!("handed over within {:?}", told.elapsed());
    is_served(&cluster, "three").await;
    drop(third);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_was_away_does_nothing_more_when_it_comes_back() {
    let Some(cluster) = small_cluster(2).await else { return };
    let mut first = replica(&cluster, "first");
    holds(&cluster, "first").await;
    let second = replica(&cluster, "second");
    is_served(&cluster, "one").await;
    // Neither killed nor told to go: its machine has no time for it.
    first.pause();
    holds(&cluster, "second").await;
    is_served(&cluster, "two").await;
    first.resume();
    cluster.until("the first has ended", async || first.has_ended().then_some(())).await;
    assert_eq!(holder(&cluster).await.as_deref(), Some("second"));
    is_served(&cluster, "three").await;
    drop(second);
}
