//! Warm, scheduled, buffer and forecast nodes, and their release, with real Karpenter.

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, DeleteParams, DynamicObject};
use kube::{ResourceExt, core::ApiResource, core::GroupVersionKind};
use muster_testkit::cluster::{Cluster, Role};
use serde_json::{Value, json};

use crate::fixture::clusters::karpenter_cluster;
use crate::fixture::controller::Controller;
use crate::fixture::manifests::{POOL, job, pod};
use crate::fixture::objects::until_node_claims;
use crate::fixture::pods::bound_pods;

async fn pool_field(cluster: &Cluster, what: &str) -> Option<Value> {
    let kind = GroupVersionKind::gvk("muster.sh", "v1alpha1", "Pool");
    let pools: Api<DynamicObject> =
        Api::all_with(cluster.client(Role::Observer).await, &ApiResource::from_gvk(&kind));
    pools.get("gpu").await.ok()?.data.pointer(what).cloned()
}

async fn until_ready(cluster: &Cluster, count: u64) {
    cluster
        .until(&format!("{count} nodes are ready"), async || {
            (pool_field(cluster, "/status/ready").await?.as_u64()? == count).then_some(())
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn warm_nodes_exist_before_demand_and_are_replaced_when_used() {
    let Some(cluster) = karpenter_cluster().await else { return };
    let pool = POOL.replace("idleAfter: 10s", "idleAfter: 5s\n  warm: {nodes: 2}");
    cluster.apply(&pool).await.expect("a pool");
    let controller = Controller::start(&cluster, &["--leader-elect=false"]);
    let warm = until_node_claims(&cluster, 2).await;
    until_ready(&cluster, 2).await;
    assert_eq!(pool_field(&cluster, "/status/target/warm").await, Some(2.into()));
    // After a crash the next controller knows which nodes are warm.
    controller.kill();
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    for name in ["one", "two"] {
        cluster.apply_as(Role::User, &pod(name, 8, "", "", "")).await.expect("a pod");
    }
    cluster.until("they run", async || (bound_pods(&cluster).await == 2).then_some(())).await;
    let all = until_node_claims(&cluster, 4).await;
    for claim in &warm {
        assert!(all.iter().any(|one| one.name_any() == claim.name_any()), "a warm node was wasted");
    }
    until_ready(&cluster, 4).await;
    // When the pods are gone there are twice as many nodes as the target.
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::User).await, "default");
    for name in ["one", "two"] {
        pods.delete(name, &DeleteParams::default()).await.expect("it goes");
    }
    until_node_claims(&cluster, 2).await;
    until_ready(&cluster, 2).await;
    // A target of zero removes them.
    cluster.apply(&pool.replace("nodes: 2}", "nodes: 0}")).await.expect("a pool");
    until_node_claims(&cluster, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scheduled_nodes_exist_at_their_hours() {
    let Some(cluster) = karpenter_cluster().await else { return };
    let pool = POOL.replace(
        "idleAfter: 10s",
        "idleAfter: 5s\n  schedules: [{cron: '* * * * *', timezone: UTC, duration: 1h, nodes: 1}]",
    );
    cluster.apply(&pool).await.expect("a pool");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    until_node_claims(&cluster, 1).await;
    until_ready(&cluster, 1).await;
    assert_eq!(pool_field(&cluster, "/status/target/scheduled").await, Some(1.into()));
    cluster.apply_as(Role::User, &job("train", 1, 8)).await.expect("a job");
    cluster.until("it runs", async || (bound_pods(&cluster).await == 1).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn buffer_follows_the_nodes_in_use() {
    let Some(cluster) = karpenter_cluster().await else { return };
    let pool = POOL.replace("idleAfter: 10s", "idleAfter: 5s\n  buffer: {percent: 50}");
    cluster.apply(&pool).await.expect("a pool");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    for name in ["one", "two"] {
        cluster.apply_as(Role::User, &pod(name, 8, "", "", "")).await.expect("a pod");
    }
    cluster.until("they run", async || (bound_pods(&cluster).await == 2).then_some(())).await;
    // Half as many as are used are free.
    until_node_claims(&cluster, 3).await;
    until_ready(&cluster, 3).await;
    assert_eq!(pool_field(&cluster, "/status/target/buffer").await, Some(1.into()));
    // The next pod finds a free node and does not wait.
    cluster.apply_as(Role::User, &pod("three", 8, "", "", "")).await.expect("a pod");
    cluster.until("it runs", async || (bound_pods(&cluster).await == 3).then_some(())).await;
    until_node_claims(&cluster, 5).await;
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::User).await, "default");
    for name in ["one", "two", "three"] {
        pods.delete(name, &DeleteParams::default()).await.expect("it goes");
    }
    until_node_claims(&cluster, 0).await;
}

/// A recorded demand history: a gang of two nodes every half hour, for three days.
fn demand_history() -> String {
    let since = jiff::Timestamp::now() - jiff::Span::new().hours(72);
    let until = since + jiff::Span::new().minutes(30 * 140);
    let lines = "1800000 2000\n".repeat(140);
    let note = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "muster-demand-gpu",
            "namespace": "muster-system",
            "labels": {"muster.sh/learned-state": "demand", "muster.sh/pool": "gpu"},
        },
        "data": {"since": since.to_string(), "until": until.to_string(), "arrivals": lines},
    });
    note.to_string()
}

/// Waits until this many arrivals are recorded.
async fn until_arrivals(cluster: &Cluster, count: usize) {
    let notes: Api<ConfigMap> = Api::namespaced(cluster.client(Role::Admin).await, "muster-system");
    cluster
        .until(&format!("{count} have come"), async || {
            let note = notes.get("muster-demand-gpu").await.ok()?;
            (note.data?.get("arrivals")?.lines().count() == count).then_some(())
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forecast_nodes_exist_and_learned_demand_outlives_the_leader() {
    let Some(cluster) = karpenter_cluster().await else { return };
    cluster.apply(&demand_history()).await.expect("a note");
    let forecast = "idleAfter: 5s\n  forecast: {seasons: [24h], serviceLevel: 0.9, maxNodes: 4}";
    cluster.apply(&POOL.replace("idleAfter: 10s", forecast)).await.expect("a pool");
    let controller = Controller::start(&cluster, &["--leader-elect=false"]);
    until_node_claims(&cluster, 2).await;
    until_ready(&cluster, 2).await;
    assert_eq!(pool_field(&cluster, "/status/target/expected").await, Some(2.into()));
    cluster.apply_as(Role::User, &job("first", 2, 8)).await.expect("a job");
    cluster.until("it runs", async || (bound_pods(&cluster).await == 2).then_some(())).await;
    until_arrivals(&cluster, 141).await;
    controller.kill();
    // The next leader continues the record, and counts nothing twice.
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply_as(Role::User, &job("second", 1, 8)).await.expect("a job");
    until_arrivals(&cluster, 142).await;
}
