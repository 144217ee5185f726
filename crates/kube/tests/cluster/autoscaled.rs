//! Pools whose nodes are asked of an autoscaler, by ProvisioningRequests that Muster writes.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod, PodTemplate};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams};
use muster_testkit::cluster::{Cluster, Part, Role, Setup};

use crate::autoscaler::{Autoscaler, CLASS, Does, Seen, requests};
use crate::controller::Controller;
use crate::leftovers::{remove_jobs, until_none_are_left};
use crate::observer::Observed;
use crate::stage::{bound, bound_of, with_nodes};
use crate::words::{job, pod};

const KIND: &str = "cluster-autoscaler/autoscaling.x-k8s.io_provisioningrequests";
/// Long enough for the controller to have done what it must not do.
const A_WHILE: Duration = Duration::from_secs(3);
/// What Muster writes on nodes that it holds.
const CLAIM: &str = "muster.sh/claim";
const HELD: &str = "cluster-autoscaler.kubernetes.io/scale-down-disabled";

/// A pool of 8-GPU nodes of two zones, of which the first is cheaper, with these further fields.
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

/// A cluster without a node, whose API server knows ProvisioningRequests.
async fn cluster(fields: &str) -> Option<Observed> {
    let setup = Setup::bare().with(Part::ControllerManager).with(Part::Kwok);
    let cluster = with_nodes(0, setup).await?;
    cluster.define_or_skip(&[KIND]).await?;
    cluster.apply(&pool(fields)).await.expect("a pool");
    Some(cluster)
}

async fn nodes(cluster: &Cluster) -> Vec<Node> {
    let nodes: Api<Node> = Api::all(cluster.client(Role::Observer).await);
    nodes.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default()
}

/// Waits until Muster holds so many nodes.
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
    cluster.until(&what, async || (bound(cluster).await == count).then_some(())).await;
}

/// Waits until there is neither a request nor a template.
async fn until_nothing_is_asked(cluster: &Cluster) {
    let client = cluster.client(Role::Observer).await;
    let templates: Api<PodTemplate> = Api::all(client.clone());
    cluster
        .until("nothing is asked for", async || {
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

fn names(seen: &[Seen]) -> Vec<String> {
    seen.iter().map(|one| one.name.clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn four_nodes_are_asked_for_in_one_request_and_four_pods_start_together() {
    let Some(cluster) = cluster("").await else { return };
    let autoscaler = Autoscaler::start(&cluster, |_| Does::Accepts).await;
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply_as(Role::User, &job("train", 4, 8)).await.expect("a job");
    let asked = autoscaler.until_seen(&cluster, 1).await;
    assert_eq!((asked.count(), &*asked.zone()), (4, "zone-a"));
    assert_eq!(asked.request["spec"]["parameters"]["howLong"], "7200");
    assert_eq!(asked.pod["containers"][0]["resources"]["requests"]["nvidia.com/gpu"], "8");
    // Three nodes, and a fourth that does not show its GPUs.
    for at in 0..3 {
        autoscaler.make_node(&asked, at, 8).await;
    }
    autoscaler.say(&asked, "Provisioned", "CapacityIsProvisioned").await;
    until_held(&cluster, 3).await;
    let last = autoscaler.make_node(&asked, 3, 0).await;
    until_held(&cluster, 4).await;
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(bound(&cluster).await, 0, "somebody started before all could");
    autoscaler.give_gpus(&last, 8).await;
    until_bound(&cluster, 4).await;
    until_nothing_is_asked(&cluster).await;
    // When they are done their nodes are let go, and are of use to others as long as they are there.
    remove_jobs(&cluster).await;
    until_held(&cluster, 0).await;
    until_none_are_left(&cluster).await;
    assert_eq!(nodes(&cluster).await.len(), 4);
    cluster.apply_as(Role::User, &job("next", 4, 8)).await.expect("a job");
    let what = "the next job starts on what is there";
    cluster.until(what, async || (bound_of(&cluster, "next").await == 4).then_some(())).await;
    assert_eq!(autoscaler.seen().len(), 1, "{:?}", names(&autoscaler.seen()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_fails_sends_the_whole_gang_elsewhere() {
    let Some(cluster) = cluster("").await else { return };
    let does = |asked: &Seen| if asked.zone() == "zone-a" { Does::Fails } else { Does::Provisions };
    let autoscaler = Autoscaler::start(&cluster, does).await;
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply_as(Role::User, &job("train", 4, 8)).await.expect("a job");
    until_bound(&cluster, 4).await;
    assert_eq!(zones(&cluster).await, ["zone-b"; 4]);
    let asked: Vec<(u64, String)> =
        autoscaler.seen().iter().map(|one| (one.count(), one.zone())).collect();
    assert_eq!(asked, [(4, "zone-a".to_owned()), (4, "zone-b".to_owned())]);
    until_nothing_is_asked(&cluster).await;
    remove_jobs(&cluster).await;
    until_held(&cluster, 0).await;
    until_none_are_left(&cluster).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_provisioned_and_is_revoked_starts_nobody() {
    let Some(cluster) = cluster("").await else { return };
    let does =
        |asked: &Seen| if asked.zone() == "zone-a" { Does::Accepts } else { Does::Provisions };
    let autoscaler = Autoscaler::start(&cluster, does).await;
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply_as(Role::User, &job("train", 4, 8)).await.expect("a job");
    let asked = autoscaler.until_seen(&cluster, 1).await;
    autoscaler.say(&asked, "Provisioned", "CapacityIsProvisioned").await;
    for at in 0..3 {
        autoscaler.make_node(&asked, at, 8).await;
    }
    until_held(&cluster, 3).await;
    autoscaler.say(&asked, "CapacityRevoked", "Reclaimed").await;
    until_bound(&cluster, 4).await;
    assert_eq!(zones(&cluster).await, ["zone-b"; 4]);
    until_nothing_is_asked(&cluster).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_never_provisioned_is_given_up_in_time() {
    let Some(cluster) = cluster("timeouts: {launch: 5s}").await else { return };
    let autoscaler = Autoscaler::start(&cluster, |_| Does::Accepts).await;
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply_as(Role::User, &job("train", 4, 8)).await.expect("a job");
    // First where it is cheap, then elsewhere, and then nowhere for a while.
    let first = autoscaler.until_seen(&cluster, 1).await;
    let second = autoscaler.until_seen(&cluster, 2).await;
    assert_eq!((&*first.zone(), &*second.zone()), ("zone-a", "zone-b"));
    until_nothing_is_asked(&cluster).await;
    assert_eq!(bound(&cluster).await, 0);
    // Nodes that come after all are nobody's, and anybody's.
    for at in 0..4 {
        autoscaler.make_node(&second, at, 8).await;
    }
    until_bound(&cluster, 4).await;
    until_held(&cluster, 0).await;
    remove_jobs(&cluster).await;
    until_none_are_left(&cluster).await;
    until_nothing_is_asked(&cluster).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_killed_after_asking_does_not_ask_again() {
    let Some(cluster) = cluster("").await else { return };
    let autoscaler = Autoscaler::start(&cluster, |_| Does::Accepts).await;
    let controller = Controller::start(&cluster, &["--leader-elect=false"]);
    cluster.apply_as(Role::User, &job("train", 4, 8)).await.expect("a job");
    let asked = autoscaler.until_seen(&cluster, 1).await;
    controller.kill();
    // One node comes while nobody looks, and one more when somebody does.
    autoscaler.make_node(&asked, 0, 8).await;
    let controller = Controller::start(&cluster, &["--leader-elect=false"]);
    until_held(&cluster, 1).await;
    autoscaler.make_node(&asked, 1, 8).await;
    until_held(&cluster, 2).await;
    controller.kill();
    autoscaler.say(&asked, "Provisioned", "CapacityIsProvisioned").await;
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    for at in 2..4 {
        autoscaler.make_node(&asked, at, 8).await;
    }
    until_bound(&cluster, 4).await;
    assert_eq!(autoscaler.seen().len(), 1, "{:?}", names(&autoscaler.seen()));
    until_nothing_is_asked(&cluster).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn warm_nodes_are_asked_for_held_and_let_go() {
    let Some(cluster) = cluster("warm: {nodes: 2}").await else { return };
    let autoscaler = Autoscaler::start(&cluster, |_| Does::Provisions).await;
    let _controller = Controller::start(&cluster, &["--leader-elect=false"]);
    until_held(&cluster, 2).await;
    until_nothing_is_asked(&cluster).await;
    // They are taken, and replaced: by others than those that are there.
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
    // One that the autoscaler takes away all the same is replaced, too.
    let all: Api<Node> = Api::all(cluster.client(Role::Admin).await);
    // Waited for by name: how many there are is three for a moment only, until the next one is made.
    let gone = format!("{}-0", last.name);
    all.delete(&gone, &DeleteParams::default()).await.expect("it goes");
    let is_there = async || all.get_opt(&gone).await.expect("an answer").is_some();
    cluster.until("it is gone", async || (!is_there().await).then_some(())).await;
    until_held(&cluster, 4).await;
    // And when none should be there they are let go.
    cluster.apply(&pool("warm: {nodes: 0}")).await.expect("a pool");
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::User).await, "default");
    for name in ["one", "two"] {
        pods.delete(name, &DeleteParams::default()).await.expect("it goes");
    }
    until_held(&cluster, 0).await;
    until_nothing_is_asked(&cluster).await;
    assert_eq!(nodes(&cluster).await.len(), 4);
    // A pool that would ask Muster itself is not taken at all.
    let round = pool("").replace(CLASS, "gang.muster.sh").replace("name: gpu}", "name: round}");
    assert!(cluster.apply(&round).await.is_err());
}
