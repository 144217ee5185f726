//! What pods insist on besides room: ports, neighbours, evenness, volumes, and those who hold them back.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod as AnyPod};
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use muster_testkit::cluster::{Cluster, Role};
use serde_json::{Value, json};

use crate::controller::Controller;
use crate::observer::{GANG, LEAST, Observed};
use crate::stage::{self, bound_of, small_cluster};
use crate::words::{POOL, node, pod};

pub(crate) const HOST: &str = "kubernetes.io/hostname";
pub(crate) const ZONE: &str = "topology.kubernetes.io/zone";
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// A cluster with a node in each of these zones: `n0`, `n1`, ...
pub(crate) async fn zones(zones: &[&str]) -> Option<Observed> {
    let cluster = small_cluster(0).await?;
    for (at, zone) in zones.iter().enumerate() {
        let node =
            node(&format!("n{at}")).replace("labels: {", &format!("labels: {{{ZONE}: {zone}, "));
        cluster.apply(&node).await.expect("a node");
    }
    Some(cluster)
}

/// Pods that are one gang of an app, with one GPU each and these fields in their spec.
pub(crate) async fn gang(cluster: &Cluster, name: &str, app: &str, count: u32, spec: &str) {
    gang_with(cluster, name, app, count, |_| spec.to_owned()).await;
}

async fn gang_with(
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

/// A pod of an app that somebody else has put on a node.
pub(crate) async fn foreign(
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

async fn pods(cluster: &Cluster) -> Api<AnyPod> {
    Api::namespaced(cluster.client(Role::Admin).await, "default")
}

pub(crate) async fn remove(cluster: &Cluster, begin: &str) {
    let pods = pods(cluster).await;
    for pod in pods.list(&ListParams::default()).await.expect("pods") {
        if pod.name_any().starts_with(begin) {
            let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
            pods.delete(&pod.name_any(), &now).await.expect("deleted");
        }
    }
}

/// The nodes of pods whose name begins so.
pub(crate) async fn nodes_of(cluster: &Cluster, begin: &str) -> Vec<String> {
    let all = pods(cluster).await.list(&ListParams::default()).await.expect("pods");
    let mine = all.items.into_iter().filter(|pod| pod.name_any().starts_with(begin));
    let mut nodes: Vec<String> = mine.filter_map(|pod| pod.spec?.node_name).collect();
    nodes.sort();
    nodes
}

pub(crate) async fn all_bound(cluster: &Cluster, begin: &str, count: usize) {
    let what = format!("{count} of {begin} are bound");
    cluster.until(&what, async || (bound_of(cluster, begin).await == count).then_some(())).await;
}

/// Waits until a gang's status says this.
async fn says(cluster: &Cluster, gang: &str, words: &str) {
    let kind = ApiResource {
        group: "muster.sh".to_owned(),
        version: "v1alpha1".to_owned(),
        api_version: "muster.sh/v1alpha1".to_owned(),
        kind: "Gang".to_owned(),
        plural: "gangs".to_owned(),
    };
    let client = cluster.client(Role::Observer).await;
    let gangs: Api<DynamicObject> = Api::namespaced_with(client, "default", &kind);
    let what = format!("the status of {gang} says `{words}`");
    cluster
        .until(&what, async || {
            let object = gangs.get_opt(gang).await.ok()??;
            let message = object.data.pointer("/status/message")?.as_str()?.to_owned();
            message.contains(words).then_some(())
        })
        .await;
    assert_eq!(bound_of(cluster, &format!("{gang}-")).await, 0, "{gang} waits");
}

/// Waits until the reason a pod was told for waiting says this.
async fn pod_says(cluster: &Cluster, pod: &str, words: &str) {
    let pods = pods(cluster).await;
    let what = format!("{pod} is told `{words}`");
    cluster
        .until(&what, async || {
            let conditions = pods.get(pod).await.ok()?.status?.conditions?;
            let told = |words: &str| {
                conditions.iter().any(|one| one.message.as_deref().unwrap_or("").contains(words))
            };
            told(words).then_some(())
        })
        .await;
    assert_eq!(bound_of(cluster, pod).await, 0, "{pod} waits");
}

fn minds(app: &str, key: &str) -> String {
    format!(
        "affinity: {{podAntiAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{{topologyKey: {key}, labelSelector: {{matchLabels: {{app: {app}}}}}}}]}}}}"
    )
}

fn near(app: &str, key: &str) -> String {
    minds(app, key).replace("podAntiAffinity", "podAffinity")
}

fn spread(app: &str, key: &str, skew: u32) -> String {
    format!(
        "topologySpreadConstraints: [{{topologyKey: {key}, maxSkew: {skew}, whenUnsatisfiable: DoNotSchedule, labelSelector: {{matchLabels: {{app: {app}}}}}}}]"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_of_a_node_is_taken_once() {
    let Some(cluster) = small_cluster(2).await else { return };
    let with_port = |text: &str, port: &str| {
        text.replace(
            "image: none",
            &format!("image: none\n    ports: [{{containerPort: 80, {port}}}]"),
        )
    };
    let other = pod("other", 1, "", "", "nodeName: n0")
        .replace("schedulerName: muster", "schedulerName: another");
    cluster.apply(&with_port(&other, "hostPort: 8080")).await.expect("a pod");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    for at in 0..2 {
        let labels = format!("{GANG}: serve");
        let marks = format!("muster.sh/gang: serve, muster.sh/gang-size: '2', {LEAST}: '2'");
        let pod = pod(&format!("serve-{at}"), 1, &labels, &marks, "");
        cluster.apply(&with_port(&pod, "hostPort: 8080")).await.expect("a pod");
    }
    says(&cluster, "serve", "port 8080/TCP").await;
    // Another port, another protocol: nobody is in the way.
    let udp = with_port(&pod("udp", 1, "", "", ""), "hostPort: 8080, protocol: UDP");
    cluster.apply(&udp).await.expect("a pod");
    all_bound(&cluster, "udp", 1).await;
    remove(&cluster, "other").await;
    all_bound(&cluster, "serve-", 2).await;
    assert_eq!(nodes_of(&cluster, "serve-").await, ["n0", "n1"]);
    // One more has nowhere to go until one of them leaves, also if it wants one address only.
    let late = with_port(&pod("late", 1, "", "", ""), "hostPort: 8080, hostIP: 10.0.0.1");
    cluster.apply(&late).await.expect("a pod");
    pod_says(&cluster, "late", "port 8080/TCP").await;
    remove(&cluster, "serve-").await;
    all_bound(&cluster, "late", 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_that_keep_away_from_their_like_get_a_node_each() {
    let Some(cluster) = small_cluster(2).await else { return };
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    gang(&cluster, "pair", "db", 2, &minds("db", HOST)).await;
    all_bound(&cluster, "pair-", 2).await;
    assert_eq!(nodes_of(&cluster, "pair-").await, ["n0", "n1"]);
    // A third has no node to itself; who does not mind shares one, unless those there mind it.
    cluster.apply(&pod("third", 1, "app: db", "", &minds("db", HOST))).await.expect("a pod");
    cluster.apply(&pod("plain", 1, "app: db", "", "")).await.expect("a pod");
    cluster.apply(&pod("cache", 1, "app: cache", "", "")).await.expect("a pod");
    all_bound(&cluster, "cache", 1).await;
    pod_says(&cluster, "third", "").await;
    pod_says(&cluster, "plain", "").await;
    remove(&cluster, "pair-0").await;
    remove(&cluster, "pair-1").await;
    all_bound(&cluster, "third", 1).await;
    all_bound(&cluster, "plain", 1).await;
    let (third, plain) = (nodes_of(&cluster, "third").await, nodes_of(&cluster, "plain").await);
    assert_ne!(third, plain);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_each_is_bought_for_pods_that_keep_away_from_their_like() {
    let Some(cluster) = stage::cluster().await else { return };
    cluster.apply(POOL).await.expect("a pool");
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    // Both would fit on one.
    gang(&cluster, "pair", "db", 2, &minds("db", HOST)).await;
    all_bound(&cluster, "pair-", 2).await;
    let nodes = nodes_of(&cluster, "pair-").await;
    assert_ne!(nodes[0], nodes[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gang_goes_where_those_are_that_it_must_be_near() {
    let Some(cluster) = zones(&["a", "b", "b"]).await else { return };
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    gang(&cluster, "db", "db", 3, &near("web", ZONE)).await;
    says(&cluster, "db", "must be near pods with app=web").await;
    foreign(&cluster, "web", "web", "n1", 7, "").await;
    all_bound(&cluster, "db-", 3).await;
    let nodes = nodes_of(&cluster, "db-").await;
    assert!(nodes.iter().all(|node| node != "n0"), "{nodes:?}");
    // The first of a kind may begin anywhere, together.
    gang(&cluster, "ring", "ring", 8, &near("ring", ZONE)).await;
    all_bound(&cluster, "ring-", 8).await;
    let nodes: BTreeSet<String> = nodes_of(&cluster, "ring-").await.into_iter().collect();
    assert!(!nodes.contains("n0") || nodes.len() == 1, "{nodes:?}");
    // By a label that is no level of the topology, that cannot be promised.
    gang(&cluster, "shelf", "shelf", 2, &near("shelf", "example.com/shelf")).await;
    says(&cluster, "shelf", "which is no level of the topology").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_meets_whom_it_must_not_and_nobody_is_met_who_must_not_be() {
    let Some(cluster) = zones(&["a", "b"]).await else { return };
    foreign(&cluster, "shy", "shy", "n0", 1, &minds("db", ZONE)).await;
    foreign(&cluster, "web", "web", "n1", 1, "").await;
    // Both are there before the controller is, and would fit on any node: one decision for both.
    gang(&cluster, "left", "left", 1, &minds("right", HOST)).await;
    gang(&cluster, "right", "right", 1, "").await;
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    all_bound(&cluster, "left-", 1).await;
    all_bound(&cluster, "right-", 1).await;
    assert_ne!(nodes_of(&cluster, "left-").await, nodes_of(&cluster, "right-").await);
    gang(&cluster, "db", "db", 2, "").await;
    all_bound(&cluster, "db-", 2).await;
    assert_eq!(nodes_of(&cluster, "db-").await, ["n1", "n1"]);
    gang(&cluster, "away", "away", 2, &minds("web", ZONE)).await;
    all_bound(&cluster, "away-", 2).await;
    assert_eq!(nodes_of(&cluster, "away-").await, ["n0", "n0"]);
    // Nowhere is left for who minds both, until one of them goes.
    let both = minds("web", ZONE).replace(
        "app: web}",
        "}, matchExpressions: [{key: app, operator: In, values: [web, shy]}]",
    );
    gang(&cluster, "both", "both", 1, &both).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(bound_of(&cluster, "both-").await, 0);
    remove(&cluster, "web").await;
    all_bound(&cluster, "both-", 1).await;
    assert_eq!(nodes_of(&cluster, "both-").await, ["n1"]);
    // One each in two zones, of which none is left for a third.
    gang(&cluster, "apart", "apart", 2, &minds("apart", ZONE)).await;
    all_bound(&cluster, "apart-", 2).await;
    assert_eq!(nodes_of(&cluster, "apart-").await, ["n0", "n1"]);
    gang(&cluster, "three", "three", 3, &minds("three", ZONE)).await;
    says(&cluster, "three", "3 members must not meet").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_must_be_spread_is_spread_or_says_why_not() {
    let Some(cluster) = zones(&["a", "b", "c"]).await else { return };
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    // All six would fit on one node.
    gang(&cluster, "even", "even", 6, &spread("even", HOST, 1)).await;
    all_bound(&cluster, "even-", 6).await;
    assert_eq!(nodes_of(&cluster, "even-").await, ["n0", "n0", "n1", "n1", "n2", "n2"]);
    gang(&cluster, "zones", "zones", 3, &spread("zones", ZONE, 1)).await;
    all_bound(&cluster, "zones-", 3).await;
    assert_eq!(nodes_of(&cluster, "zones-").await, ["n0", "n1", "n2"]);
    // Pods that stand for themselves are counted one by one.
    for at in 0..3 {
        let one = pod(&format!("one-{at}"), 1, "app: one", "", &spread("one", ZONE, 1));
        cluster.apply(&one).await.expect("a pod");
    }
    all_bound(&cluster, "one-", 3).await;
    assert_eq!(nodes_of(&cluster, "one-").await, ["n0", "n1", "n2"]);
    gang(&cluster, "racks", "racks", 2, &spread("racks", "example.com/rack", 1)).await;
    says(&cluster, "racks", "waits: must be spread over example.com/rack").await;
    gang_with(&cluster, "mixed", "mixed", 2, |at| {
        if at == 0 { spread("mixed", ZONE, 1) } else { String::new() }
    })
    .await;
    // Who has no rule goes anywhere.
    all_bound(&cluster, "mixed-", 2).await;
}

/// A claim of so little in a class.
fn claim(name: &str, class: &str, mode: &str) -> String {
    format!(
        "
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: {name}, namespace: default}}
spec: {{storageClassName: {class}, accessModes: [{mode}], resources: {{requests: {{storage: 1Gi}}}}}}
"
    )
}

fn class(name: &str, mode: &str) -> String {
    format!(
        "
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {{name: {name}}}
provisioner: example.com/disks
volumeBindingMode: {mode}
"
    )
}

fn uses(claim: &str) -> String {
    format!("volumes: [{{name: data, persistentVolumeClaim: {{claimName: {claim}}}}}]")
}

/// Gives a claim a volume that only nodes of one zone reach, as a provisioner and the controller of volumes would.
async fn provide(cluster: &Cluster, claim: &str, zone: &str) {
    let client = cluster.client(Role::Admin).await;
    let volume: PersistentVolume = serde_json::from_value(json!({
        "metadata": {"name": format!("pv-{claim}")},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": "example.com", "volumeHandle": claim},
            "claimRef": {"namespace": "default", "name": claim},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]},
            ]}},
        },
    }))
    .expect("a volume");
    Api::<PersistentVolume>::all(client.clone())
        .create(&Default::default(), &volume)
        .await
        .expect("a volume");
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client, "default");
    let patch = json!({
        "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": format!("pv-{claim}")},
    });
    claims.patch(claim, &PatchParams::default(), &Patch::Merge(patch)).await.expect("bound");
}

/// The nodes that claims were told.
async fn selected(cluster: &Cluster) -> BTreeMap<String, String> {
    let claims: Api<PersistentVolumeClaim> =
        Api::namespaced(cluster.client(Role::Observer).await, "default");
    let all = claims.list(&ListParams::default()).await.expect("claims");
    let told = |claim: &PersistentVolumeClaim| claim.annotations().get(SELECTED_NODE).cloned();
    all.iter().filter_map(|claim| Some((claim.name_any(), told(claim)?))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_go_where_their_volumes_are() {
    let Some(cluster) = zones(&["a", "b"]).await else { return };
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply(&class("now", "Immediate")).await.expect("a class");
    for (name, mode) in [("data", "ReadWriteOnce"), ("single", "ReadWriteOncePod")] {
        cluster.apply(&claim(name, "now", mode)).await.expect("a claim");
    }
    gang(&cluster, "read", "read", 2, &uses("data")).await;
    says(&cluster, "read", "waits: volume claim data is not bound yet").await;
    provide(&cluster, "data", "b").await;
    all_bound(&cluster, "read-", 2).await;
    assert_eq!(nodes_of(&cluster, "read-").await, ["n1", "n1"]);
    // Of two pods that want what is for one, the second waits.
    provide(&cluster, "single", "a").await;
    cluster.apply(&pod("first", 1, "", "", &uses("single"))).await.expect("a pod");
    all_bound(&cluster, "first", 1).await;
    assert_eq!(nodes_of(&cluster, "first").await, ["n0"]);
    cluster.apply(&pod("second", 1, "", "", &uses("single"))).await.expect("a pod");
    pod_says(&cluster, "second", "is for one pod only").await;
    remove(&cluster, "first").await;
    all_bound(&cluster, "second", 1).await;
    // What nobody has made yet is waited for, and what is not understood is said.
    cluster.apply(&pod("early", 1, "", "", &uses("missing"))).await.expect("a pod");
    pod_says(&cluster, "early", "volume claim missing does not exist").await;
    let devices = "resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]";
    gang(&cluster, "devices", "devices", 1, devices).await;
    says(&cluster, "devices", "waits: devices by ResourceClaims are not supported").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_pod_is_bound_before_all_volumes_of_its_gang_are_made() {
    let Some(cluster) = zones(&["a", "b"]).await else { return };
    cluster.apply(&class("late", "WaitForFirstConsumer")).await.expect("a class");
    for at in 0..2 {
        cluster
            .apply(&claim(&format!("disk-{at}"), "late", "ReadWriteOnce"))
            .await
            .expect("a claim");
    }
    // Five GPUs each, so that they cannot share a node.
    let controller =
        Controller::start(&cluster, &["--leader-elect=false", "--volume-binding-timeout", "12s"]);
    for at in 0..2 {
        let marks = format!("muster.sh/gang: train, muster.sh/gang-size: '2', {LEAST}: '2'");
        let labels = format!("{GANG}: train");
        let pod = pod(&format!("train-{at}"), 5, &labels, &marks, &uses(&format!("disk-{at}")));
        cluster.apply(&pod).await.expect("a pod");
    }
    let both = async || (selected(&cluster).await.len() == 2).then_some(());
    cluster.until("both claims are told a node", both).await;
    says(&cluster, "train", "waits for its volumes: disk-0, disk-1").await;
    // Nobody makes them: it gives its seats back, takes back what it told, and tries again.
    cluster
        .until("it starts over", async || controller.log().contains("starts over").then_some(()))
        .await;
    assert_eq!(bound_of(&cluster, "train-").await, 0);
    // Killed in between, it goes on where it was.
    controller.kill();
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.until("both claims are told a node again", both).await;
    let told = selected(&cluster).await;
    let zone = |node: &str| if node == "n0" { "a" } else { "b" };
    provide(&cluster, "disk-0", zone(&told["disk-0"])).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(bound_of(&cluster, "train-").await, 0, "one of two volumes is no reason to start");
    provide(&cluster, "disk-1", zone(&told["disk-1"])).await;
    all_bound(&cluster, "train-", 2).await;
    for at in 0..2 {
        let node = nodes_of(&cluster, &format!("train-{at}")).await;
        assert_eq!(node, [told[&format!("disk-{at}")].clone()]);
    }
}

async fn patch_node(cluster: &Cluster, name: &str, patch: Value) {
    let nodes: Api<Node> = Api::all(cluster.client(Role::Admin).await);
    nodes.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.expect("patched");
}

#[tokio::test(flavor = "multi_thread")]
async fn cordons_other_schedulers_pods_gates_and_priorities_count() {
    let Some(cluster) = small_cluster(2).await else { return };
    patch_node(&cluster, "n0", json!({"spec": {"unschedulable": true}})).await;
    foreign(&cluster, "other", "other", "n1", 6, "").await;
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    // Two of eight are left, beside six that another scheduler's pod has.
    cluster.apply(&pod("two", 2, "", "", "")).await.expect("a pod");
    all_bound(&cluster, "two", 1).await;
    assert_eq!(nodes_of(&cluster, "two").await, ["n1"]);
    cluster.apply(&pod("one", 1, "", "", "")).await.expect("a pod");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(bound_of(&cluster, "one").await, 0, "the only room is on a cordoned node");
    patch_node(&cluster, "n0", json!({"spec": {"unschedulable": false}})).await;
    all_bound(&cluster, "one", 1).await;
    assert_eq!(nodes_of(&cluster, "one").await, ["n0"]);
    // A gang waits for its member that is held back.
    gang_with(&cluster, "held", "held", 2, |at| {
        if at == 0 {
            "schedulingGates: [{name: example.com/later}]".to_owned()
        } else {
            String::new()
        }
    })
    .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(bound_of(&cluster, "held-").await, 0);
    let open = Patch::Merge(json!({"spec": {"schedulingGates": null}}));
    pods(&cluster).await.patch("held-0", &PatchParams::default(), &open).await.expect("let go");
    all_bound(&cluster, "held-", 2).await;
    // Of two that want the same room, the one that matters more gets it, although it came later.
    foreign(&cluster, "full", "full", "n0", 5, "").await;
    let high = "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000}";
    cluster.apply(high).await.expect("a class");
    cluster.apply(&pod("low", 6, "", "", "")).await.expect("a pod");
    cluster.apply(&pod("high", 6, "", "", "priorityClassName: high")).await.expect("a pod");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(bound_of(&cluster, "low").await + bound_of(&cluster, "high").await, 0);
    remove(&cluster, "other").await;
    all_bound(&cluster, "high", 1).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(bound_of(&cluster, "low").await, 0);
}
