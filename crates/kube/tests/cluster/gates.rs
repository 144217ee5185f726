//! Pods that other schedulers bind: they keep their gates until the whole gang has its nodes, and lose them together.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use muster_kube::objects::{GATE, SEAT};
use muster_testkit::cluster::{Cluster, Part, Role, Setup};
use serde_json::json;

use crate::controller::Controller;
use crate::observer::{GANG, LEAST, Observed};
use crate::refusal::{allow, refuse};
use crate::stage::{self, bound, bound_of, until_claims, with_nodes};
use crate::words::{POOL, job, pod};

/// Nodes that are there, and the stock scheduler.
async fn scheduled(nodes: u32) -> Option<Observed> {
    with_nodes(nodes, Setup::bare().with(Part::Kwok).with(Part::Scheduler)).await
}

/// The same for pods of the stock scheduler that have the gate.
fn gated(yaml: &str) -> String {
    yaml.replace("schedulerName: muster", &format!("schedulingGates: [{{name: {GATE}}}]"))
}

/// A member with four GPUs of a gang of so many.
fn member(gang: &str, name: &str, size: u32) -> String {
    let labels = format!("{GANG}: {gang}");
    let marks = format!("{LEAST}: '{size}', muster.sh/gang: {gang}, muster.sh/gang-size: '{size}'");
    pod(name, 4, &labels, &marks, "")
}

/// Members of one gang, the first so many of them.
fn members(gang: &str, first: u32, size: u32) -> String {
    (0..first).map(|at| gated(&member(gang, &format!("{gang}-{at}"), size))).collect()
}

pub(crate) async fn pods_of(cluster: &Cluster, begin: &str) -> Vec<Pod> {
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Observer).await, "default");
    let all = pods.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default();
    all.into_iter().filter(|pod| pod.name_any().starts_with(begin)).collect()
}

fn gates(pod: &Pod) -> Vec<&str> {
    let gates = pod.spec.as_ref().and_then(|spec| spec.scheduling_gates.as_ref());
    gates.into_iter().flatten().map(|gate| &*gate.name).collect()
}

pub(crate) fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

/// How many pods whose name begins so have lost every gate.
async fn let_go(cluster: &Cluster, begin: &str) -> usize {
    pods_of(cluster, begin).await.iter().filter(|pod| gates(pod).is_empty()).count()
}

pub(crate) async fn until_bound(cluster: &Cluster, begin: &str, count: usize) {
    let what = format!("{count} of {begin} are bound");
    cluster.until(&what, async || (bound_of(cluster, begin).await == count).then_some(())).await;
}

/// Where a gang's members were planned to be, by its object.
pub(crate) async fn planned(cluster: &Cluster, gang: &str) -> BTreeMap<String, i64> {
    let client = cluster.client(Role::Observer).await;
    let (gangs, _) = kube::discovery::pinned_kind(
        &client,
        &kube::core::GroupVersionKind::gvk("muster.sh", "v1alpha1", "Gang"),
    )
    .await
    .expect("it is served");
    let gangs: Api<DynamicObject> = Api::namespaced_with(client, "default", &gangs);
    let Ok(gang) = gangs.get(gang).await else { return BTreeMap::new() };
    let placement = gang.data["status"]["placement"].as_array().cloned().unwrap_or_default();
    let one = |one: &serde_json::Value| {
        (one["node"].as_str().unwrap_or_default().to_owned(), one["members"].as_i64().unwrap_or(0))
    };
    placement.iter().map(one).collect()
}

/// Every one of these is where it was let go to, and together they are where their gang was planned to be.
async fn are_where_planned(cluster: &Cluster, begin: &str, gang: &str) {
    let mut there: BTreeMap<String, i64> = BTreeMap::new();
    for pod in pods_of(cluster, begin).await {
        let node = node_of(&pod).unwrap_or_default().to_owned();
        assert_eq!(pod.annotations().get(SEAT), Some(&node), "{}", pod.name_any());
        *there.entry(node).or_default() += 1;
    }
    assert_eq!(there, planned(cluster, gang).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn gates_are_lifted_together_when_every_node_is_there() {
    let Some(cluster) = stage::cluster_with_scheduler().await else { return };
    cluster.apply(POOL).await.expect("a pool");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply_as(Role::User, &gated(&job("train", 4, 8))).await.expect("a job");
    until_claims(&cluster, 4).await;
    cluster.until("all are bound", async || (bound(&cluster).await == 4).then_some(())).await;
    let mut nodes: Vec<String> = Vec::new();
    for pod in pods_of(&cluster, "train").await {
        let scheduler = pod.spec.as_ref().and_then(|spec| spec.scheduler_name.as_deref());
        assert_eq!(scheduler, Some("default-scheduler"));
        assert_eq!(pod.annotations().get(SEAT).map(|seat| &**seat), node_of(&pod));
        nodes.extend(node_of(&pod).map(str::to_owned));
    }
    nodes.sort();
    nodes.dedup();
    assert_eq!(nodes.len(), 4, "one on each of the nodes that were bought");
    eprintln!("let go and bound within {:?}", cluster.observer().window());
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_gang_keeps_its_gates_and_a_whole_one_is_counted_once() {
    let Some(cluster) = scheduled(2).await else { return };
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    // Sixteen GPUs: five pods of four never fit; of two, one is not there while somebody else holds it.
    cluster.apply(&members("large", 5, 5)).await.expect("a gang that does not fit");
    cluster.apply(&members("early", 1, 2)).await.expect("half a gang");
    let held = gated(&member("early", "early-1", 2))
        .replace("schedulingGates: [", "schedulingGates: [{name: example.com/wait}, ");
    cluster.apply(&held).await.expect("the other half");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!((let_go(&cluster, "large").await, let_go(&cluster, "early").await), (0, 0));
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Admin).await, "default");
    let patch =
        json!({"spec": {"schedulingGates": [{"$patch": "delete", "name": "example.com/wait"}]}});
    let patched = pods.patch("early-1", &PatchParams::default(), &Patch::Strategic(patch)).await;
    patched.expect("the other gate is lifted");
    until_bound(&cluster, "early", 2).await;
    are_where_planned(&cluster, "early", "early").await;
    // Four GPUs on each node, or eight on one, are left for two more: not if the first two were counted twice.
    cluster.apply(&members("late", 2, 2)).await.expect("a second gang");
    until_bound(&cluster, "late", 2).await;
    are_where_planned(&cluster, "late", "late").await;
    // And the second run knows what the first did: nothing is free any more.
    assert_eq!(let_go(&cluster, "large").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gate_alone_makes_a_gang_of_one_and_is_lifted_from_musters_own_pods_too() {
    let Some(cluster) = scheduled(1).await else { return };
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
    for pod in pods_of(&cluster, "own").await {
        // Muster has bound it itself, and had nothing to say to others.
        assert_eq!(pod.annotations().get(SEAT), None);
        assert_eq!(gates(&pod), Vec::<&str>::new());
    }
}

/// Tries to lift a gate without doing it, and says whether that would be allowed.
async fn may_be_let_go(cluster: &Cluster, pod: &str) -> bool {
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Admin).await, "default");
    let patch = json!({"spec": {"schedulingGates": null}});
    let dry = PatchParams { dry_run: true, ..PatchParams::default() };
    pods.patch(pod, &dry, &Patch::Merge(patch)).await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_killed_between_the_first_gate_and_the_last_lifts_the_rest() {
    let Some(cluster) = scheduled(2).await else { return };
    cluster.excuse("half was let go in part");
    cluster.excuse("half was bound in part");
    refuse(&cluster, ("", "pods"), "half-stuck", "has(object.spec.schedulingGates)").await;
    let three: String = members("half", 3, 4);
    let stuck = gated(&member("half", "half-stuck", 4));
    cluster.apply(&stuck).await.expect("a member");
    cluster
        .until("the policy holds", async || {
            (!may_be_let_go(&cluster, "half-stuck").await).then_some(())
        })
        .await;
    let controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply(&three).await.expect("the others");
    cluster
        .until("three are let go", async || (let_go(&cluster, "half").await == 3).then_some(()))
        .await;
    let before = planned(&cluster, "half").await;
    controller.kill();
    assert_eq!(let_go(&cluster, "half").await, 3);
    allow(&cluster).await;
    cluster
        .until("the policy is gone", async || {
            may_be_let_go(&cluster, "half-stuck").await.then_some(())
        })
        .await;
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    until_bound(&cluster, "half", 4).await;
    // As it was written down before the first was let go.
    assert_eq!(planned(&cluster, "half").await, before);
    are_where_planned(&cluster, "half", "half").await;
    // What was let go before and after counts once: two nodes of eight GPUs are full with four of four.
    cluster.apply(&members("more", 1, 1)).await.expect("one more");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(let_go(&cluster, "more").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gang_that_its_scheduler_leaves_standing_in_part_starts_over() {
    // There is no other scheduler: it puts one pod on its node and then no more.
    let Some(cluster) = with_nodes(2, Setup::bare().with(Part::Kwok)).await else { return };
    cluster.excuse("torn was bound in part");
    let _controller =
        Controller::start(&cluster, &["--leader-elect=false", "--handover-timeout", "3s"]);
    cluster.apply(&members("torn", 2, 2)).await.expect("a gang");
    cluster
        .until("both are let go", async || (let_go(&cluster, "torn").await == 2).then_some(()))
        .await;
    let pod = pods_of(&cluster, "torn-0").await.pop().expect("a pod");
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "torn-0"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": pod.annotations()[SEAT]},
    });
    let request = http::Request::post("/api/v1/namespaces/default/pods/torn-0/binding")
        .body(binding.to_string().into_bytes())
        .expect("a request");
    let client = cluster.client(Role::Admin).await;
    client.request::<serde_json::Value>(request).await.expect("bound");
    // Neither has an owner who would make it anew.
    cluster
        .until("both are gone", async || pods_of(&cluster, "torn").await.is_empty().then_some(()))
        .await;
}
