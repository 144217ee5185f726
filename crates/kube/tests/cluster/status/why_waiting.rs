//! Why a gang waits, wherever users look: the Gang, its pods, events, and `muster why`.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams};
use muster_kube::why::{WhyError, why};
use muster_testkit::cluster::{Cluster, Role};

use crate::fixture::clusters::kwok_cluster;
use crate::fixture::controller::Controller;
use crate::fixture::manifests::pod;
use crate::fixture::pods::bound_with_prefix;

/// A member of a gang with Muster's annotations.
fn member(gang: &str, at: u32, of: u32) -> String {
    let marks = format!("muster.sh/gang: {gang}, muster.sh/gang-size: '{of}'");
    pod(&format!("{gang}-{at}"), 8, "", &marks, "")
}

async fn until_why_contains(cluster: &Cluster, name: &str, words: &str) -> Vec<String> {
    cluster
        .until(&format!("`why {name}` contains `{words}`"), async || {
            let client = cluster.client(Role::Observer).await;
            let known = why(client, "default", name).await.ok()?;
            let lines: Vec<String> = known.into_iter().flat_map(|one| one.lines).collect();
            lines.iter().any(|line| line.contains(words)).then_some(lines)
        })
        .await
}

async fn until_pod_reason(cluster: &Cluster, name: &str, reason: &str) {
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Observer).await, "default");
    cluster
        .until(&format!("{name} has a condition with {reason}"), async || {
            let status = pods.get(name).await.ok()?.status?;
            let is_it = |reason_: Option<&str>| reason_ == Some(reason);
            status.conditions?.iter().any(|one| is_it(one.reason.as_deref())).then_some(())
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_gang_reports_why_it_waits_and_its_position() {
    let Some(cluster) = kwok_cluster(2).await else { return };
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    // One of two members is missing.
    cluster.apply_as(Role::User, &member("half", 0, 2)).await.expect("a pod");
    until_pod_reason(&cluster, "half-0", "WaitingForMembers").await;
    until_why_contains(&cluster, "half", "1 of 2 members").await;
    cluster.apply_as(Role::User, &member("half", 1, 2)).await.expect("a pod");
    cluster
        .until("both are bound", async || {
            (bound_with_prefix(&cluster, "half").await == 2).then_some(())
        })
        .await;
    until_why_contains(&cluster, "half", "running").await;
    // The next gang does not fit.
    for at in 0..2 {
        cluster.apply_as(Role::User, &member("late", at, 2)).await.expect("a pod");
    }
    let lines = until_why_contains(&cluster, "late", "it waits for").await;
    assert!(lines[1].contains("number 1 in line"), "{lines:?}");
    until_pod_reason(&cluster, "late-1", "Unschedulable").await;
    let known = why(cluster.client(Role::Observer).await, "default", "late").await.expect("known");
    let admitted = known[0].status["conditions"][0].clone();
    assert_eq!((&admitted["type"], &admitted["status"]), (&"Admitted".into(), &"False".into()));
    // A single pod has no Gang object.
    cluster.apply_as(Role::User, &pod("alone", 8, "", "", "")).await.expect("a pod");
    cluster
        .until("the single pod reports why", async || {
            let known = why(cluster.client(Role::Observer).await, "default", "alone").await.ok()?;
            let reported = &known[0].lines[0];
            (!reported.contains("nothing was decided")).then_some(())
        })
        .await;
    let events: Api<Event> = Api::namespaced(cluster.client(Role::Observer).await, "default");
    cluster
        .until("there are events", async || {
            let all = events.list(&ListParams::default()).await.ok()?.items;
            let reported =
                |reason: &str| all.iter().any(|one| one.reason.as_deref() == Some(reason));
            (reported("Running") && reported("Waiting")).then_some(())
        })
        .await;
    let unknown = why(cluster.client(Role::Observer).await, "default", "nobody").await;
    let Err(WhyError::Unknown { others, .. }) = unknown else { panic!("{unknown:?}") };
    assert!(others.iter().any(|name| name.starts_with("late")), "{others:?}");
}
