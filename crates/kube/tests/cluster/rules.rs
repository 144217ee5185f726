//! The rules of single pods hold for gangs: taints, selectors, what containers take together, nodes that are to be left
//! alone, and who goes first. On nodes that nobody plays, so that all of it is the test's to say.

use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams};
use muster_testkit::cluster::{Cluster, Role, Setup};
use serde_json::{Value, json};

use crate::controller::Controller;
use crate::gates::{node_of, pods_of, until_bound};
use crate::stage::{bound_of, gang_status, remove_pods, still};
use crate::words::{HIGH, pod, still_node};

/// Two pods that are one gang, with so many GPUs each and these fields in their spec.
async fn pair(cluster: &Cluster, name: &str, gpus: u32, spec: &str) {
    let marks = format!("muster.sh/gang: {name}, muster.sh/gang-size: '2'");
    for at in 0..2 {
        let pod = pod(&format!("{name}-{at}"), gpus, "", &marks, spec);
        cluster.apply(&pod).await.expect("a pod");
    }
}

/// Waits until a gang is told that it cannot start, and makes sure that nobody of it has.
async fn waits(cluster: &Cluster, name: &str) {
    cluster
        .until(&format!("{name} is told that it waits"), async || {
            assert_eq!(bound_of(cluster, name).await, 0, "{name} was started");
            let status = gang_status(cluster, name).await;
            ["Waiting", "Infeasible"].iter().any(|phase| status["phase"] == *phase).then_some(())
        })
        .await;
}

/// Waits until both of a pair are bound, and makes sure that they are where they belong.
async fn until_on(cluster: &Cluster, name: &str, nodes: [&str; 2]) {
    until_bound(cluster, name, 2).await;
    let pods = pods_of(cluster, name).await;
    let mut found: Vec<&str> = pods.iter().filter_map(node_of).collect();
    found.sort_unstable();
    assert_eq!(found, nodes, "{name}");
}

async fn patch(cluster: &Cluster, node: &str, what: &Value) {
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
async fn taints_keep_gangs_off_and_labels_choose_their_nodes() {
    let Some(cluster) = still(0, Setup::bare()).await else { return };
    for (name, disk) in [("fast", "ssd"), ("kept", "ssd"), ("slow", "hdd")] {
        let node = still_node(name).replace("labels: {", &format!("labels: {{disk: {disk}, "));
        cluster.apply(&node).await.expect("a node");
    }
    let taint = json!({"key": "dedicated", "value": "gpu", "effect": "NoSchedule"});
    patch(&cluster, "kept", &json!({"spec": {"taints": [taint]}})).await;
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    // Of the two nodes that its selector allows one is tainted, and both of it fit on the other.
    let ssd = "nodeSelector: {disk: ssd}";
    pair(&cluster, "first", 4, ssd).await;
    until_on(&cluster, "first", ["fast", "fast"]).await;
    // The next has nowhere to go, until it is one that bears the taint.
    pair(&cluster, "second", 4, ssd).await;
    waits(&cluster, "second").await;
    let other = "tolerations: [{key: dedicated, operator: Equal, value: cpu, effect: NoSchedule}]";
    pair(&cluster, "mistaken", 4, &format!("{ssd}\n  {other}")).await;
    waits(&cluster, "mistaken").await;
    pair(&cluster, "bears", 4, &format!("{ssd}\n  {}", other.replace("cpu", "gpu"))).await;
    until_on(&cluster, "bears", ["kept", "kept"]).await;
    // What is required of nodes holds like a selector: there is a node, and it is not this one.
    let requires = |rule: &str| {
        format!(
            "affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{{matchExpressions: [{rule}]}}]}}}}}}"
        )
    };
    pair(&cluster, "picky", 4, &requires("{key: example.com/rack, operator: Exists}")).await;
    waits(&cluster, "picky").await;
    pair(&cluster, "not-fast", 4, &requires("{key: disk, operator: NotIn, values: [ssd]}")).await;
    until_on(&cluster, "not-fast", ["slow", "slow"]).await;
    remove_pods(&cluster, "not-fast").await;
    // A label, and a taint that goes, let in those who waited for it.
    patch(&cluster, "slow", &json!({"metadata": {"labels": {"example.com/rack": "r1"}}})).await;
    until_on(&cluster, "picky", ["slow", "slow"]).await;
    assert_eq!(bound_of(&cluster, "second").await + bound_of(&cluster, "mistaken").await, 0);
    remove_pods(&cluster, "mistaken").await;
    remove_pods(&cluster, "bears").await;
    patch(&cluster, "kept", &json!({"spec": {"taints": null}})).await;
    until_on(&cluster, "second", ["kept", "kept"]).await;
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
async fn what_containers_take_together_decides_whether_a_pair_shares_a_node() {
    // One node with 64 cores: half of it is 32.
    let Some(cluster) = still(1, Setup::bare()).await else { return };
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
    // Each has a container of one core besides; what is said of it is what the two of a pair share a node by, or do not.
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
            true => until_on(&cluster, name, ["n0", "n0"]).await,
            false => waits(&cluster, name).await,
        }
        remove_pods(&cluster, &format!("{name}-")).await;
    }
    // Those that are too large for one node have one each.
    cluster.apply(&still_node("n1")).await.expect("a node");
    for (name, spec, _) in cases.iter().filter(|(_, _, fits)| !fits) {
        pair(&cluster, name, 1, spec).await;
        until_on(&cluster, name, ["n0", "n1"]).await;
        remove_pods(&cluster, &format!("{name}-")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_are_cordoned_or_not_ready_get_nobody_and_the_higher_of_two_gangs_goes_first() {
    let Some(cluster) = still(2, Setup::bare()).await else { return };
    cluster.apply(HIGH).await.expect("a class");
    patch(&cluster, "n0", &json!({"spec": {"unschedulable": true}})).await;
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    pair(&cluster, "pair", 8, "").await;
    waits(&cluster, "pair").await;
    // One node for the other: that the cordon is lifted is seen by somebody who starts there.
    set_ready(&cluster, "n1", "False").await;
    patch(&cluster, "n0", &json!({"spec": {"unschedulable": null}})).await;
    cluster.apply(&pod("witness", 1, "", "", "")).await.expect("a pod");
    until_bound(&cluster, "witness", 1).await;
    remove_pods(&cluster, "witness").await;
    cluster.apply(&pod("witness-too", 1, "", "", "")).await.expect("a pod");
    until_bound(&cluster, "witness-too", 1).await;
    assert_eq!(bound_of(&cluster, "pair").await, 0, "there is one node for two");
    for witness in pods_of(&cluster, "witness").await {
        assert_eq!(node_of(&witness), Some("n0"));
    }
    remove_pods(&cluster, "witness-too").await;
    set_ready(&cluster, "n1", "True").await;
    until_on(&cluster, "pair", ["n0", "n1"]).await;
    remove_pods(&cluster, "pair").await;
    // Both of these need what another scheduler's pod has; the one that matters more came later.
    let other = pod("other", 8, "", "", "nodeName: n0");
    let other = other.replace("schedulerName: muster", "schedulerName: another");
    cluster.apply(&other).await.expect("a pod");
    pair(&cluster, "low", 8, "").await;
    waits(&cluster, "low").await;
    pair(&cluster, "high", 8, "priorityClassName: high").await;
    waits(&cluster, "high").await;
    remove_pods(&cluster, "other").await;
    until_on(&cluster, "high", ["n0", "n1"]).await;
    assert_eq!(bound_of(&cluster, "low").await, 0);
    remove_pods(&cluster, "high").await;
    until_on(&cluster, "low", ["n0", "n1"]).await;
}
