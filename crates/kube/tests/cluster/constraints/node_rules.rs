//! Rules of single pods hold for gangs: taints, selectors, summed container requests, cordons, priority. The nodes have
//! no kubelet, so that the test alone sets their conditions.

use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams};
use muster_testkit::cluster::{Cluster, Role, Setup};
use serde_json::{Value, json};

use crate::fixture::clusters::cluster_without_kubelets;
use crate::fixture::controller::Controller;
use crate::fixture::manifests::{HIGH_PRIORITY, node_without_kubelet, pod};
use crate::fixture::objects::gang_status;
use crate::fixture::pods::{
    bound_with_prefix, node_of, pods_with_prefix, remove_pods, until_bound,
};

/// A gang of two pods, with this many GPUs each and these fields in their spec.
async fn pair(cluster: &Cluster, name: &str, gpus: u32, spec: &str) {
    let marks = format!("muster.sh/gang: {name}, muster.sh/gang-size: '2'");
    for at in 0..2 {
        let pod = pod(&format!("{name}-{at}"), gpus, "", &marks, spec);
        cluster.apply(&pod).await.expect("a pod");
    }
}

/// Waits until the status of a gang says that it waits, and asserts that no member is bound.
async fn until_waiting(cluster: &Cluster, name: &str) {
    cluster
        .until(&format!("the status of {name} says that it waits"), async || {
            assert_eq!(bound_with_prefix(cluster, name).await, 0, "{name} was started");
            let status = gang_status(cluster, name).await;
            ["Waiting", "Infeasible"].iter().any(|phase| status["phase"] == *phase).then_some(())
        })
        .await;
}

/// Waits until both pods of a pair are bound, and asserts their nodes.
async fn until_on_nodes(cluster: &Cluster, name: &str, nodes: [&str; 2]) {
    until_bound(cluster, name, 2).await;
    let pods = pods_with_prefix(cluster, name).await;
    let mut found: Vec<&str> = pods.iter().filter_map(node_of).collect();
    found.sort_unstable();
    assert_eq!(found, nodes, "{name}");
}

async fn patch_node(cluster: &Cluster, node: &str, what: &Value) {
    let nodes: Api<Node> = Api::all(cluster.client(Role::Admin).await);
    let patch = Patch::Strategic(what);
    nodes.patch(node, &PatchParams::default(), &patch).await.expect("patched");
}

async fn set_ready(cluster: &Cluster, node: &str, status: &str) {
    let nodes: Api<Node> = Api::all(cluster.client(Role::Admin).await);
    let now = jiff::Timestamp::now().to_string();
    let ready = json!({"type": "Ready", "status": status, "reason": "Said", "message": "said", "lastTransitionTime": now});
    let patch = Patch::Strategic(json!({"status": {"conditions": [ready]}}));
    nodes.patch_status(node, &PatchParams::default(), &patch).await.expect("patched");
}

#[tokio::test(flavor = "multi_thread")]
async fn taints_selectors_and_node_affinity_hold_for_gangs() {
    let Some(cluster) = cluster_without_kubelets(0, Setup::bare()).await else { return };
    for (name, disk) in [("fast", "ssd"), ("kept", "ssd"), ("slow", "hdd")] {
        let node =
            node_without_kubelet(name).replace("labels: {", &format!("labels: {{disk: {disk}, "));
        cluster.apply(&node).await.expect("a node");
    }
    let taint = json!({"key": "dedicated", "value": "gpu", "effect": "NoSchedule"});
    patch_node(&cluster, "kept", &json!({"spec": {"taints": [taint]}})).await;
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    // Of the two nodes that the selector allows one is tainted; both pods fit on the other.
    let ssd = "nodeSelector: {disk: ssd}";
    pair(&cluster, "first", 4, ssd).await;
    until_on_nodes(&cluster, "first", ["fast", "fast"]).await;
    // The next pair fits nowhere, until one tolerates the taint.
    pair(&cluster, "second", 4, ssd).await;
    until_waiting(&cluster, "second").await;
    let other = "tolerations: [{key: dedicated, operator: Equal, value: cpu, effect: NoSchedule}]";
    pair(&cluster, "mistaken", 4, &format!("{ssd}\n  {other}")).await;
    until_waiting(&cluster, "mistaken").await;
    pair(&cluster, "bears", 4, &format!("{ssd}\n  {}", other.replace("cpu", "gpu"))).await;
    until_on_nodes(&cluster, "bears", ["kept", "kept"]).await;
    // Required node affinity holds like a selector: the node with room does not match it.
    let requires = |rule: &str| {
        format!(
            "affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{{matchExpressions: [{rule}]}}]}}}}}}"
        )
    };
    pair(&cluster, "picky", 4, &requires("{key: example.com/rack, operator: Exists}")).await;
    until_waiting(&cluster, "picky").await;
    pair(&cluster, "not-fast", 4, &requires("{key: disk, operator: NotIn, values: [ssd]}")).await;
    until_on_nodes(&cluster, "not-fast", ["slow", "slow"]).await;
    remove_pods(&cluster, "not-fast").await;
    // A new label and a removed taint admit the pairs that waited for them.
    patch_node(&cluster, "slow", &json!({"metadata": {"labels": {"example.com/rack": "r1"}}}))
        .await;
    until_on_nodes(&cluster, "picky", ["slow", "slow"]).await;
    assert_eq!(
        bound_with_prefix(&cluster, "second").await + bound_with_prefix(&cluster, "mistaken").await,
        0
    );
    remove_pods(&cluster, "mistaken").await;
    remove_pods(&cluster, "bears").await;
    patch_node(&cluster, "kept", &json!({"spec": {"taints": null}})).await;
    until_on_nodes(&cluster, "second", ["kept", "kept"]).await;
}

/// Pods of this class take ten cores more than their containers.
const HEAVY: &str = "
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: heavy}
handler: heavy
overhead: {podFixed: {cpu: 10}}
";

#[tokio::test(flavor = "multi_thread")]
async fn summed_container_requests_decide_whether_two_pods_share_a_node() {
    // One node with 64 cores: half of it is 32.
    let Some(cluster) = cluster_without_kubelets(1, Setup::bare()).await else { return };
    cluster.apply(HEAVY).await.expect("a class");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    let one = |name: &str, cpu: u32, more: &str| {
        format!("{{name: {name}, image: none, {more}resources: {{requests: {{cpu: {cpu}}}}}}}")
    };
    let init = |cpu: u32| format!("initContainers: [{}]", one("init", cpu, ""));
    let side = |cpu: u32, then: &str| {
        let side = one("side", cpu, "restartPolicy: Always, ");
        format!("initContainers: [{side}{then}]")
    };
    // Each pod also has a container of one core. The flag says whether both pods of the pair fit on one node.
    let then = |cpu: u32| format!(", {}", one("init", cpu, ""));
    let cases = [
        ("plain", String::new(), true),
        ("init", init(32), true),
        ("large-init", init(33), false),
        ("side", side(31, ""), true),
        ("large-side", side(32, ""), false),
        ("side-and-init", side(20, &then(12)), true),
        ("side-and-large-init", side(20, &then(13)), false),
        ("overhead", format!("runtimeClassName: heavy\n  {}", init(22)), true),
        ("large-overhead", format!("runtimeClassName: heavy\n  {}", init(23)), false),
        ("whole", "resources: {requests: {cpu: 32}}".to_owned(), true),
        ("large-whole", "resources: {requests: {cpu: 33}}".to_owned(), false),
    ];
    for (name, spec, fits) in &cases {
        pair(&cluster, name, 1, spec).await;
        match fits {
            true => until_on_nodes(&cluster, name, ["n0", "n0"]).await,
            false => until_waiting(&cluster, name).await,
        }
        remove_pods(&cluster, &format!("{name}-")).await;
    }
    // Pairs that are too large for one node get one node each.
    cluster.apply(&node_without_kubelet("n1")).await.expect("a node");
    for (name, spec, _) in cases.iter().filter(|(_, _, fits)| !fits) {
        pair(&cluster, name, 1, spec).await;
        until_on_nodes(&cluster, name, ["n0", "n1"]).await;
        remove_pods(&cluster, &format!("{name}-")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unready_nodes_get_no_pod_and_the_higher_priority_goes_first() {
    let Some(cluster) = cluster_without_kubelets(2, Setup::bare()).await else { return };
    cluster.apply(HIGH_PRIORITY).await.expect("a class");
    patch_node(&cluster, "n0", &json!({"spec": {"unschedulable": true}})).await;
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    pair(&cluster, "pair", 8, "").await;
    until_waiting(&cluster, "pair").await;
    // The other node takes its place: a pod that starts there proves that the cordon is lifted.
    set_ready(&cluster, "n1", "False").await;
    patch_node(&cluster, "n0", &json!({"spec": {"unschedulable": null}})).await;
    cluster.apply(&pod("witness", 1, "", "", "")).await.expect("a pod");
    until_bound(&cluster, "witness", 1).await;
    remove_pods(&cluster, "witness").await;
    cluster.apply(&pod("witness-too", 1, "", "", "")).await.expect("a pod");
    until_bound(&cluster, "witness-too", 1).await;
    assert_eq!(bound_with_prefix(&cluster, "pair").await, 0, "there is one node for two");
    for witness in pods_with_prefix(&cluster, "witness").await {
        assert_eq!(node_of(&witness), Some("n0"));
    }
    remove_pods(&cluster, "witness-too").await;
    set_ready(&cluster, "n1", "True").await;
    until_on_nodes(&cluster, "pair", ["n0", "n1"]).await;
    remove_pods(&cluster, "pair").await;
    // Both need the node of another scheduler's pod; the one of higher priority came later.
    let other = pod("other", 8, "", "", "nodeName: n0");
    let other = other.replace("schedulerName: muster", "schedulerName: another");
    cluster.apply(&other).await.expect("a pod");
    pair(&cluster, "low", 8, "").await;
    until_waiting(&cluster, "low").await;
    pair(&cluster, "high", 8, "priorityClassName: high").await;
    until_waiting(&cluster, "high").await;
    remove_pods(&cluster, "other").await;
    until_on_nodes(&cluster, "high", ["n0", "n1"]).await;
    assert_eq!(bound_with_prefix(&cluster, "low").await, 0);
    remove_pods(&cluster, "high").await;
    until_on_nodes(&cluster, "low", ["n0", "n1"]).await;
}
