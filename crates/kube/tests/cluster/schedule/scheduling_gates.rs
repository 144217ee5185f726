//! Pods of other schedulers: they keep their scheduling gates until the whole gang has its nodes, and lose them
//! together.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use muster_kube::objects::{ASSIGNED_NODE, GATE};
use muster_testkit::cluster::{Cluster, Part, Role, Setup};
use serde_json::json;

use crate::fixture::clusters::{cluster_with_nodes, karpenter_cluster_with_scheduler};
use crate::fixture::controller::Controller;
use crate::fixture::deny_policy::{deny_updates_unless, remove_deny_policy};
use crate::fixture::manifests::{POOL, job, pod};
use crate::fixture::objects::placement_of;
use crate::fixture::objects::until_node_claims;
use crate::fixture::pods::{bound_pods, node_of, pods_with_prefix, until_bound};
use crate::observer::{GANG, LEAST, ObservedCluster};

/// A cluster with kwok nodes and the stock kube-scheduler.
async fn cluster_with_scheduler(nodes: u32) -> Option<ObservedCluster> {
    cluster_with_nodes(nodes, Setup::bare().with(Part::Kwok).with(Part::Scheduler)).await
}

/// The same with the gate, for the stock scheduler.
fn gated(yaml: &str) -> String {
    yaml.replace("schedulerName: muster", &format!("schedulingGates: [{{name: {GATE}}}]"))
}

/// A member with four GPUs of a gang of this size.
fn member(gang: &str, name: &str, size: u32) -> String {
    let labels = format!("{GANG}: {gang}");
    let marks = format!("{LEAST}: '{size}', muster.sh/gang: {gang}, muster.sh/gang-size: '{size}'");
    pod(name, 4, &labels, &marks, "")
}

/// The first members of a gang.
fn members(gang: &str, first: u32, size: u32) -> String {
    (0..first).map(|at| gated(&member(gang, &format!("{gang}-{at}"), size))).collect()
}

fn gates(pod: &Pod) -> Vec<&str> {
    let gates = pod.spec.as_ref().and_then(|spec| spec.scheduling_gates.as_ref());
    gates.into_iter().flatten().map(|gate| &*gate.name).collect()
}

/// How many pods with this prefix have no gate.
async fn ungated(cluster: &Cluster, prefix: &str) -> usize {
    pods_with_prefix(cluster, prefix).await.iter().filter(|pod| gates(pod).is_empty()).count()
}

/// Asserts that every pod is on its assigned node, and that together they match the placement of their gang.
async fn assert_on_planned_nodes(cluster: &Cluster, prefix: &str, gang: &str) {
    let mut there: BTreeMap<String, i64> = BTreeMap::new();
    for pod in pods_with_prefix(cluster, prefix).await {
        let node = node_of(&pod).unwrap_or_default().to_owned();
        assert_eq!(pod.annotations().get(ASSIGNED_NODE), Some(&node), "{}", pod.name_any());
        *there.entry(node).or_default() += 1;
    }
    assert_eq!(there, placement_of(cluster, gang).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn gates_are_removed_together_when_every_node_is_ready() {
    let Some(cluster) = karpenter_cluster_with_scheduler().await else { return };
    cluster.apply(POOL).await.expect("a pool");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply_as(Role::User, &gated(&job("train", 4, 8))).await.expect("a job");
    until_node_claims(&cluster, 4).await;
    cluster.until("all are bound", async || (bound_pods(&cluster).await == 4).then_some(())).await;
    let mut nodes: Vec<String> = Vec::new();
    for pod in pods_with_prefix(&cluster, "train").await {
        let scheduler = pod.spec.as_ref().and_then(|spec| spec.scheduler_name.as_deref());
        assert_eq!(scheduler, Some("default-scheduler"));
        assert_eq!(pod.annotations().get(ASSIGNED_NODE).map(|seat| &**seat), node_of(&pod));
        nodes.extend(node_of(&pod).map(str::to_owned));
    }
    nodes.sort();
    nodes.dedup();
    assert_eq!(nodes.len(), 4, "one on each of the nodes that were bought");
    eprintln!("ungated and bound within {:?}", cluster.observer().window());
}

#[tokio::test(flavor = "multi_thread")]
async fn partial_gang_keeps_its_gates_and_a_whole_one_counts_once() {
    let Some(cluster) = cluster_with_scheduler(2).await else { return };
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    // Sixteen GPUs: five pods of four never fit; of the gang of two, one pod has a foreign gate.
    cluster.apply(&members("large", 5, 5)).await.expect("a gang that does not fit");
    cluster.apply(&members("early", 1, 2)).await.expect("half a gang");
    let held = gated(&member("early", "early-1", 2))
        .replace("schedulingGates: [", "schedulingGates: [{name: example.com/wait}, ");
    cluster.apply(&held).await.expect("the other half");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!((ungated(&cluster, "large").await, ungated(&cluster, "early").await), (0, 0));
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Admin).await, "default");
    let patch =
        json!({"spec": {"schedulingGates": [{"$patch": "delete", "name": "example.com/wait"}]}});
    let patched = pods.patch("early-1", &PatchParams::default(), &Patch::Strategic(patch)).await;
    patched.expect("the other gate is lifted");
    until_bound(&cluster, "early", 2).await;
    assert_on_planned_nodes(&cluster, "early", "early").await;
    // Four GPUs on each node, or eight on one, are free for two more: not if the first two were counted twice.
    cluster.apply(&members("late", 2, 2)).await.expect("a second gang");
    until_bound(&cluster, "late", 2).await;
    assert_on_planned_nodes(&cluster, "late", "late").await;
    // The second cycle counts the first gang: nothing is free any more.
    assert_eq!(ungated(&cluster, "large").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn gate_alone_makes_a_gang_of_one_also_under_musters_scheduler() {
    let Some(cluster) = cluster_with_scheduler(1).await else { return };
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply(&gated(&pod("alone", 2, "", "", ""))).await.expect("a pod");
    let both = |name| {
        let yaml = member("own", name, 2);
        let gate = format!("schedulerName: muster\n  schedulingGates: [{{name: {GATE}}}]");
        yaml.replace("schedulerName: muster", &gate).replace("gpu: 4", "gpu: 3")
    };
    cluster.apply(&format!("{}{}", both("own-0"), both("own-1"))).await.expect("a gang");
    until_bound(&cluster, "alone", 1).await;
    until_bound(&cluster, "own", 2).await;
    for pod in pods_with_prefix(&cluster, "own").await {
        // Muster has bound it itself, and wrote no assigned node for another scheduler.
        assert_eq!(pod.annotations().get(ASSIGNED_NODE), None);
        assert_eq!(gates(&pod), Vec::<&str>::new());
    }
}

/// Whether the API server would allow the gate to be removed, by a dry run.
async fn may_be_ungated(cluster: &Cluster, pod: &str) -> bool {
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Admin).await, "default");
    let patch = json!({"spec": {"schedulingGates": null}});
    let dry = PatchParams { dry_run: true, ..PatchParams::default() };
    pods.patch(pod, &dry, &Patch::Merge(patch)).await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn controller_killed_while_ungating_removes_the_remaining_gates() {
    let Some(cluster) = cluster_with_scheduler(2).await else { return };
    cluster.allow_violation("half was ungated in part");
    cluster.allow_violation("half was bound in part");
    deny_updates_unless(&cluster, ("", "pods"), "half-stuck", "has(object.spec.schedulingGates)")
        .await;
    let three: String = members("half", 3, 4);
    let stuck = gated(&member("half", "half-stuck", 4));
    cluster.apply(&stuck).await.expect("a member");
    cluster
        .until("the policy holds", async || {
            (!may_be_ungated(&cluster, "half-stuck").await).then_some(())
        })
        .await;
    let controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply(&three).await.expect("the others");
    cluster
        .until("three are ungated", async || (ungated(&cluster, "half").await == 3).then_some(()))
        .await;
    let before = placement_of(&cluster, "half").await;
    controller.kill();
    assert_eq!(ungated(&cluster, "half").await, 3);
    remove_deny_policy(&cluster).await;
    cluster
        .until("the policy is gone", async || {
            may_be_ungated(&cluster, "half-stuck").await.then_some(())
        })
        .await;
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    until_bound(&cluster, "half", 4).await;
    // The placement is the one written before the first gate was removed.
    assert_eq!(placement_of(&cluster, "half").await, before);
    assert_on_planned_nodes(&cluster, "half", "half").await;
    // Pods ungated before and after count once: two nodes of eight GPUs are full with four of four.
    cluster.apply(&members("more", 1, 1)).await.expect("one more");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(ungated(&cluster, "more").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn gang_its_scheduler_binds_in_part_is_evicted_to_start_over() {
    // The test plays the other scheduler: it binds one pod and then no more.
    let Some(cluster) = cluster_with_nodes(2, Setup::bare().with(Part::Kwok)).await else { return };
    cluster.allow_violation("torn was bound in part");
    let _controller =
        Controller::start(&cluster, &["--leader-elect=false", "--handover-timeout", "3s"]);
    cluster.apply(&members("torn", 2, 2)).await.expect("a gang");
    cluster
        .until("both are ungated", async || (ungated(&cluster, "torn").await == 2).then_some(()))
        .await;
    let pod = pods_with_prefix(&cluster, "torn-0").await.pop().expect("a pod");
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "torn-0"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": pod.annotations()[ASSIGNED_NODE]},
    });
    let request = http::Request::post("/api/v1/namespaces/default/pods/torn-0/binding")
        .body(binding.to_string().into_bytes())
        .expect("a request");
    let client = cluster.client(Role::Admin).await;
    client.request::<serde_json::Value>(request).await.expect("bound");
    // Neither has an owner that would create it again.
    cluster
        .until("both are gone", async || {
            pods_with_prefix(&cluster, "torn").await.is_empty().then_some(())
        })
        .await;
}
