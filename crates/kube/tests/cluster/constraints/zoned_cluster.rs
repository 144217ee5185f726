//! Clusters whose nodes have zones, and gangs whose pods carry scheduling rules.

use k8s_openapi::api::core::v1::Pod as AnyPod;
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams};
use muster_testkit::cluster::{Cluster, Role};

use crate::fixture::clusters::kwok_cluster;
use crate::fixture::manifests::{node, pod};
use crate::fixture::pods::bound_with_prefix;
use crate::observer::{GANG, LEAST, ObservedCluster};

pub(crate) const HOST: &str = "kubernetes.io/hostname";
pub(crate) const ZONE: &str = "topology.kubernetes.io/zone";

/// A cluster with a node in each of these zones: `n0`, `n1`, ...
pub(crate) async fn cluster_with_zones(zones: &[&str]) -> Option<ObservedCluster> {
    let cluster = kwok_cluster(0).await?;
    for (at, zone) in zones.iter().enumerate() {
        let node =
            node(&format!("n{at}")).replace("labels: {", &format!("labels: {{{ZONE}: {zone}, "));
        cluster.apply(&node).await.expect("a node");
    }
    Some(cluster)
}

/// A gang of pods of an app, with one GPU each and these fields in their spec.
pub(crate) async fn gang_of_app(cluster: &Cluster, name: &str, app: &str, count: u32, spec: &str) {
    gang_of_app_with(cluster, name, app, count, |_| spec.to_owned()).await;
}

pub(crate) async fn gang_of_app_with(
    cluster: &Cluster,
    name: &str,
    app: &str,
    count: u32,
    spec: impl Fn(u32) -> String,
) {
    let labels = format!("app: {app}, {GANG}: {name}");
    let marks =
        format!("muster.sh/gang: {name}, muster.sh/gang-size: '{count}', {LEAST}: '{count}'");
    for at in 0..count {
        let pod = pod(&format!("{name}-{at}"), 1, &labels, &marks, &spec(at));
        cluster.apply(&pod).await.expect("a pod");
    }
}

/// A pod of an app that another scheduler has bound.
pub(crate) async fn foreign_pod(
    cluster: &Cluster,
    name: &str,
    app: &str,
    on: &str,
    gpus: u32,
    spec: &str,
) {
    let pod = pod(name, gpus, &format!("app: {app}"), "", &format!("nodeName: {on}\n  {spec}"));
    let pod = pod.replace("schedulerName: muster", "schedulerName: another");
    cluster.apply(&pod).await.expect("a pod");
}

pub(crate) async fn pods(cluster: &Cluster) -> Api<AnyPod> {
    Api::namespaced(cluster.client(Role::Admin).await, "default")
}

pub(crate) async fn remove_with_prefix(cluster: &Cluster, prefix: &str) {
    let pods = pods(cluster).await;
    for pod in pods.list(&ListParams::default()).await.expect("pods") {
        if pod.name_any().starts_with(prefix) {
            let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
            pods.delete(&pod.name_any(), &now).await.expect("deleted");
        }
    }
}

/// The nodes of pods with this prefix, sorted.
pub(crate) async fn nodes_of(cluster: &Cluster, prefix: &str) -> Vec<String> {
    let all = pods(cluster).await.list(&ListParams::default()).await.expect("pods");
    let mine = all.items.into_iter().filter(|pod| pod.name_any().starts_with(prefix));
    let mut nodes: Vec<String> = mine.filter_map(|pod| pod.spec?.node_name).collect();
    nodes.sort();
    nodes
}

/// Waits until the message of a gang's status contains this text, and asserts that no member is bound.
pub(crate) async fn until_gang_reports(cluster: &Cluster, gang: &str, words: &str) {
    let kind = ApiResource {
        group: "muster.sh".to_owned(),
        version: "v1alpha1".to_owned(),
        api_version: "muster.sh/v1alpha1".to_owned(),
        kind: "Gang".to_owned(),
        plural: "gangs".to_owned(),
    };
    let client = cluster.client(Role::Observer).await;
    let gangs: Api<DynamicObject> = Api::namespaced_with(client, "default", &kind);
    let what = format!("the status of {gang} contains `{words}`");
    cluster
        .until(&what, async || {
            let object = gangs.get_opt(gang).await.ok()??;
            let message = object.data.pointer("/status/message")?.as_str()?.to_owned();
            message.contains(words).then_some(())
        })
        .await;
    assert_eq!(bound_with_prefix(cluster, &format!("{gang}-")).await, 0, "{gang} waits");
}

/// Waits until a condition of a pod contains this text, and asserts that the pod is not bound.
pub(crate) async fn until_pod_reports(cluster: &Cluster, pod: &str, words: &str) {
    let pods = pods(cluster).await;
    let what = format!("a condition of {pod} contains `{words}`");
    cluster
        .until(&what, async || {
            let conditions = pods.get(pod).await.ok()?.status?.conditions?;
            let reported = |words: &str| {
                conditions.iter().any(|one| one.message.as_deref().unwrap_or("").contains(words))
            };
            reported(words).then_some(())
        })
        .await;
    assert_eq!(bound_with_prefix(cluster, pod).await, 0, "{pod} waits");
}
