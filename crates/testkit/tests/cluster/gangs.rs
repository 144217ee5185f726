//! The native PodGroup, and the default scheduler that supports it.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DynamicObject};
use kube::discovery;
use muster_testkit::cluster::{Cluster, Part, Role, Setup};

use super::{is_running, kind, node_yaml, pod_yaml, pods};

#[tokio::test]
async fn native_gangs_are_served() {
    let Some(cluster) = Cluster::start_or_skip(Setup::bare()).await else { return };
    let client = cluster.client(Role::Observer).await;
    let group = discovery::group(&client, "scheduling.k8s.io").await.expect("the group");
    let mut versions: Vec<&str> = group.versions().collect();
    versions.sort_unstable();
    let gangs = cluster.version().gang_apis();
    assert_eq!(versions, [&["v1"], gangs].concat());
    if gangs.contains(&"v1beta1") {
        let kinds = |version| {
            let resources = group.versioned_resources(version);
            let mut kinds: Vec<String> = resources.into_iter().map(|(one, _)| one.kind).collect();
            kinds.sort_unstable();
            kinds
        };
        assert_eq!(kinds("v1beta1"), ["PodGroup", "Workload"]);
        assert_eq!(kinds("v1alpha3"), ["PodGroup", "Workload"]);
    }
}

/// Two pods of eight GPUs that start together or not at all.
fn gang_yaml() -> String {
    let group = "apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: pair, namespace: default}
spec: {schedulingPolicy: {gang: {minCount: 2}}}
";
    let member = |name| pod_yaml(name, 8, "  schedulingGroup: {podGroupName: pair}\n");
    [group, &member("a"), &member("b")].join("---\n")
}

fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

#[tokio::test]
async fn default_scheduler_binds_a_pod() {
    let setup = Setup::bare().with(Part::Scheduler).with(Part::Kwok);
    let Some(cluster) = Cluster::start_or_skip(setup).await else { return };
    cluster.apply(&node_yaml("first")).await.expect("applied");
    cluster.apply_as(Role::User, &pod_yaml("alone", 1, "")).await.expect("applied");
    let pods = pods(&cluster, Role::Observer).await;
    let running =
        cluster.until("it runs", async || pods.get("alone").await.ok().filter(is_running)).await;
    assert_eq!(node_of(&running), Some("first"));
}

/// With room for one of two it binds neither; with room for both it binds both.
#[tokio::test]
async fn default_scheduler_binds_a_gang_whole() {
    let setup = Setup::bare().with(Part::Scheduler).with(Part::Kwok);
    let Some(cluster) = Cluster::start_or_skip(setup).await else { return };
    if !cluster.version().gang_apis().contains(&"v1beta1") {
        return;
    }
    cluster.apply(&node_yaml("first")).await.expect("applied");
    cluster.apply(&gang_yaml()).await.expect("applied");
    let groups: Api<DynamicObject> = Api::namespaced_with(
        cluster.client(Role::Observer).await,
        "default",
        &kind("scheduling.k8s.io", "v1beta1", "PodGroup"),
    );
    let reason = cluster.until("the gang is judged", async || {
        let group = groups.get("pair").await.ok()?;
        Some(group.data["status"]["conditions"].get(0)?["reason"].as_str()?.to_owned())
    });
    assert_eq!(reason.await, "Unschedulable");
    let pods = pods(&cluster, Role::Observer).await;
    let members = async || pods.list(&Default::default()).await.expect("a list").items;
    assert!(members().await.iter().all(|pod| node_of(pod).is_none()), "a gang is not torn");
    cluster.apply(&node_yaml("second")).await.expect("applied");
    let running = cluster
        .until("both run", async || {
            Some(members().await).filter(|pods| pods.iter().all(is_running))
        })
        .await;
    let mut bound: Vec<_> = running.iter().filter_map(node_of).collect();
    bound.sort_unstable();
    assert_eq!(bound, ["first", "second"]);
}
