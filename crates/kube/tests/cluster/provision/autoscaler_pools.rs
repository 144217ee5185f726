//! Pools whose nodes an autoscaler creates, by ProvisioningRequests that Muster writes.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod, PodTemplate};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams};
use muster_testkit::cluster::{Cluster, Part, Role, Setup};

use crate::fixture::clusters::cluster_with_nodes;
use crate::fixture::controller::Controller;
use crate::fixture::fake_autoscaler::{Behaviour, CLASS, FakeAutoscaler, SeenRequest, requests};
use crate::fixture::leftovers::{remove_jobs, until_no_leftovers};
use crate::fixture::manifests::{job, pod};
use crate::fixture::pods::{bound_pods, bound_with_prefix};
use crate::observer::ObservedCluster;

const KIND: &str = "cluster-autoscaler/autoscaling.x-k8s.io_provisioningrequests";
/// Long enough for the controller to act wrongly.
const A_WHILE: Duration = Duration::from_secs(3);
/// Annotations that Muster writes on nodes that it holds.
const CLAIM: &str = "muster.sh/claim";
const HELD: &str = "cluster-autoscaler.kubernetes.io/scale-down-disabled";

/// A pool of 8-GPU nodes in two zones, of which the first is cheaper, with these further fields.
fn pool(fields: &str) -> String {
    let offering = |zone: &str, price: u32| {
        format!(
            "{{instanceType: gpu8, zone: {zone}, capacityType: on-demand, price: {price}, gpu: {{model: H100, memory: 80Gi, count: 8}}, allocatable: {{cpu: 60, memory: 500Gi}}, bootTime: 5s}}"
        )
    };
    format!(
        "
apiVersion: muster.sh/v1alpha1
kind: Pool
metadata: {{name: gpu}}
spec:
  tier: on-demand
  provider: {{provisioningRequest: {{className: {CLASS}, parameters: {{howLong: '7200'}}}}}}
  offerings:
  - {}
  - {}
  limits: {{nodes: 8}}
  idleAfter: 5s
  {fields}
",
        offering("zone-a", 50),
        offering("zone-b", 98)
    )
}

/// A cluster without nodes, whose API server serves ProvisioningRequests.
async fn cluster(fields: &str) -> Option<ObservedCluster> {
    let setup = Setup::bare().with(Part::ControllerManager).with(Part::Kwok);
    let cluster = cluster_with_nodes(0, setup).await?;
    cluster.define_or_skip(&[KIND]).await?;
    cluster.apply(&pool(fields)).await.expect("a pool");
    Some(cluster)
}

async fn nodes(cluster: &Cluster) -> Vec<Node> {
    let nodes: Api<Node> = Api::all(cluster.client(Role::Observer).await);
    nodes.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default()
}

/// Waits until Muster holds this many nodes.
async fn until_held(cluster: &Cluster, count: usize) {
    cluster
        .until(&format!("{count} nodes are held"), async || {
            let all = nodes(cluster).await;
            let held = |node: &&Node| {
                let marks = node.annotations();
                assert_eq!(marks.contains_key(CLAIM), marks.contains_key(HELD));
                marks.contains_key(CLAIM)
            };
            (all.iter().filter(held).count() == count).then_some(())
        })
        .await;
}

async fn until_bound(cluster: &Cluster, count: usize) {
    let what = format!("{count} pods are bound");
    cluster.until(&what, async || (bound_pods(cluster).await == count).then_some(())).await;
}

/// Waits until there is neither a request nor a template.
async fn until_no_requests(cluster: &Cluster) {
    let client = cluster.client(Role::Observer).await;
    let templates: Api<PodTemplate> = Api::all(client.clone());
    cluster
        .until("no request and no template exists", async || {
            let left = templates.list(&ListParams::default()).await.ok()?.items.len();
            (left == 0 && requests(&client).await.is_empty()).then_some(())
        })
        .await;
}

/// The zones of the nodes that pods are on.
async fn zones(cluster: &Cluster) -> Vec<String> {
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Observer).await, "default");
    let all = nodes(cluster).await;
    let pods = pods.list(&ListParams::default()).await.expect("pods").items;
    let on = pods.iter().filter_map(|pod| pod.spec.as_ref()?.node_name.clone());
    on.filter_map(|name| {
        let node = all.iter().find(|node| node.name_any() == name)?;
        node.labels().get("topology.kubernetes.io/zone").cloned()
    })
    .collect()
}

fn names(seen: &[SeenRequest]) -> Vec<String> {
    seen.iter().map(|one| one.name.clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn gang_gets_its_nodes_by_one_request_and_starts_whole() {
    let Some(cluster) = cluster("").await else { return };
    let autoscaler = FakeAutoscaler::start(&cluster, |_| Behaviour::Accepts).await;
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply_as(Role::User, &job("train", 4, 8)).await.expect("a job");
    let asked = autoscaler.until_seen(&cluster, 1).await;
    assert_eq!((asked.count(), &*asked.zone()), (4, "zone-a"));
    assert_eq!(asked.request["spec"]["parameters"]["howLong"], "7200");
    assert_eq!(asked.pod["containers"][0]["resources"]["requests"]["nvidia.com/gpu"], "8");
    // Three nodes, and a fourth without its GPUs.
    for at in 0..3 {
        autoscaler.make_node(&asked, at, 8).await;
    }
    autoscaler.add_condition(&asked, "Provisioned", "CapacityIsProvisioned").await;
    until_held(&cluster, 3).await;
    let last = autoscaler.make_node(&asked, 3, 0).await;
    until_held(&cluster, 4).await;
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(bound_pods(&cluster).await, 0, "a pod started before all could");
    autoscaler.give_gpus(&last, 8).await;
    until_bound(&cluster, 4).await;
    until_no_requests(&cluster).await;
    // When the gang is done its nodes are released, and other gangs may use them while they exist.
    remove_jobs(&cluster).await;
    until_held(&cluster, 0).await;
    until_no_leftovers(&cluster).await;
    assert_eq!(nodes(&cluster).await.len(), 4);
    cluster.apply_as(Role::User, &job("next", 4, 8)).await.expect("a job");
    let what = "the next job starts on what is there";
    cluster
        .until(what, async || (bound_with_prefix(&cluster, "next").await == 4).then_some(()))
        .await;
    assert_eq!(autoscaler.seen().len(), 1, "{:?}", names(&autoscaler.seen()));
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_request_moves_the_whole_gang_to_another_zone() {
    let Some(cluster) = cluster("").await else { return };
    let does = |asked: &SeenRequest| {
        if asked.zone() == "zone-a" { Behaviour::Fails } else { Behaviour::Provisions }
    };
    let autoscaler = FakeAutoscaler::start(&cluster, does).await;
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply_as(Role::User, &job("train", 4, 8)).await.expect("a job");
    until_bound(&cluster, 4).await;
    assert_eq!(zones(&cluster).await, ["zone-b"; 4]);
    let asked: Vec<(u64, String)> =
        autoscaler.seen().iter().map(|one| (one.count(), one.zone())).collect();
    assert_eq!(asked, [(4, "zone-a".to_owned()), (4, "zone-b".to_owned())]);
    until_no_requests(&cluster).await;
    remove_jobs(&cluster).await;
    until_held(&cluster, 0).await;
    until_no_leftovers(&cluster).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn revoked_capacity_starts_no_member() {
    let Some(cluster) = cluster("").await else { return };
    let does = |asked: &SeenRequest| {
        if asked.zone() == "zone-a" { Behaviour::Accepts } else { Behaviour::Provisions }
    };
    let autoscaler = FakeAutoscaler::start(&cluster, does).await;
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply_as(Role::User, &job("train", 4, 8)).await.expect("a job");
    let asked = autoscaler.until_seen(&cluster, 1).await;
    autoscaler.add_condition(&asked, "Provisioned", "CapacityIsProvisioned").await;
    for at in 0..3 {
        autoscaler.make_node(&asked, at, 8).await;
    }
    until_held(&cluster, 3).await;
    autoscaler.add_condition(&asked, "CapacityRevoked", "Reclaimed").await;
    until_bound(&cluster, 4).await;
    assert_eq!(zones(&cluster).await, ["zone-b"; 4]);
    until_no_requests(&cluster).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn request_never_provisioned_expires_at_the_launch_timeout() {
    let Some(cluster) = cluster("timeouts: {launch: 5s}").await else { return };
    let autoscaler = FakeAutoscaler::start(&cluster, |_| Behaviour::Accepts).await;
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply_as(Role::User, &job("train", 4, 8)).await.expect("a job");
    // First in the cheap zone, then in the other, and then in none for a while.
    let first = autoscaler.until_seen(&cluster, 1).await;
    let second = autoscaler.until_seen(&cluster, 2).await;
    assert_eq!((&*first.zone(), &*second.zone()), ("zone-a", "zone-b"));
    until_no_requests(&cluster).await;
    assert_eq!(bound_pods(&cluster).await, 0);
    // Nodes that come later belong to no order, and any gang may use them.
    for at in 0..4 {
        autoscaler.make_node(&second, at, 8).await;
    }
    until_bound(&cluster, 4).await;
    until_held(&cluster, 0).await;
    remove_jobs(&cluster).await;
    until_no_leftovers(&cluster).await;
    until_no_requests(&cluster).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn controller_killed_after_its_request_creates_no_second_one() {
    let Some(cluster) = cluster("").await else { return };
    let autoscaler = FakeAutoscaler::start(&cluster, |_| Behaviour::Accepts).await;
    let controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply_as(Role::User, &job("train", 4, 8)).await.expect("a job");
    let asked = autoscaler.until_seen(&cluster, 1).await;
    controller.kill();
    // One node comes while no controller runs, and one more under the next.
    autoscaler.make_node(&asked, 0, 8).await;
    let controller = Controller::start(&cluster, &["--leader-elect=false"]);
    until_held(&cluster, 1).await;
    autoscaler.make_node(&asked, 1, 8).await;
    until_held(&cluster, 2).await;
    controller.kill();
    autoscaler.add_condition(&asked, "Provisioned", "CapacityIsProvisioned").await;
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    for at in 2..4 {
        autoscaler.make_node(&asked, at, 8).await;
    }
    until_bound(&cluster, 4).await;
    assert_eq!(autoscaler.seen().len(), 1, "{:?}", names(&autoscaler.seen()));
    until_no_requests(&cluster).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn warm_nodes_are_requested_held_and_released() {
    let Some(cluster) = cluster("warm: {nodes: 2}").await else { return };
    let autoscaler = FakeAutoscaler::start(&cluster, |_| Behaviour::Provisions).await;
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    until_held(&cluster, 2).await;
    until_no_requests(&cluster).await;
    // The warm nodes are used and replaced; the request excludes the existing nodes by name.
    for name in ["one", "two"] {
        cluster.apply_as(Role::User, &pod(name, 8, "", "", "")).await.expect("a pod");
    }
    until_bound(&cluster, 2).await;
    until_held(&cluster, 4).await;
    let last = autoscaler.seen().pop().expect("it was asked for");
    let all = last.pod.to_string();
    assert!(
        all.contains(r#""NotIn""#) && all.contains(&format!("{}-0", autoscaler.seen()[0].name))
    );
    // A node that the autoscaler removes is replaced, too.
    let all: Api<Node> = Api::all(cluster.client(Role::Admin).await);
    // Waited for by name: the count is three for a moment only, until the next node is created.
    let gone = format!("{}-0", last.name);
    all.delete(&gone, &DeleteParams::default()).await.expect("it goes");
    let is_there = async || all.get_opt(&gone).await.expect("an answer").is_some();
    cluster.until("it is gone", async || (!is_there().await).then_some(())).await;
    until_held(&cluster, 4).await;
    // A target of zero releases them.
    cluster.apply(&pool("warm: {nodes: 0}")).await.expect("a pool");
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::User).await, "default");
    for name in ["one", "two"] {
        pods.delete(name, &DeleteParams::default()).await.expect("it goes");
    }
    until_held(&cluster, 0).await;
    until_no_requests(&cluster).await;
    assert_eq!(nodes(&cluster).await.len(), 4);
    // A pool that would request capacity from Muster itself is refused.
    let round = pool("").replace(CLASS, "gang.muster.sh").replace("name: gpu}", "name: round}");
    assert!(cluster.apply(&round).await.is_err());
}
