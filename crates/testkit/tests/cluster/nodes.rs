//! Fake nodes, created by hand and by Karpenter.

use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DeleteParams, DynamicObject};
use muster_testkit::cluster::{Cluster, Part, Role, Setup};

use super::{holds, is_ready, is_running, kind, node_yaml, nodes, pod_yaml, pods};

#[tokio::test]
async fn kwok_makes_a_node_ready_and_its_pod_running() {
    let Some(cluster) = Cluster::start_or_skip(Setup::bare().with(Part::Kwok)).await else {
        return;
    };
    cluster.apply(&node_yaml("one")).await.expect("applied");
    let nodes = nodes(&cluster, Role::Observer).await;
    cluster.until("the node is ready", async || nodes.get("one").await.ok().filter(is_ready)).await;
    cluster.apply(&pod_yaml("alone", 8, "  nodeName: one\n")).await.expect("applied");
    let pods = pods(&cluster, Role::Observer).await;
    cluster.until("the pod runs", async || pods.get("alone").await.ok().filter(is_running)).await;
}

/// A NodeClaim without a NodePool, as Muster writes them.
const CLAIM: &str = "
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: muster-1}
spec:
  expireAfter: Never
  nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
  requirements:
  - {key: node.kubernetes.io/instance-type, operator: In, values: [gpu8]}
  - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
  - {key: topology.kubernetes.io/zone, operator: In, values: [zone-b]}
  resources: {requests: {nvidia.com/gpu: '8'}}
";

fn label<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    node.metadata.labels.as_ref()?.get(key).map(String::as_str)
}

fn gpus(node: &Node) -> Option<&str> {
    let allocatable = node.status.as_ref()?.allocatable.as_ref()?;
    allocatable.get("nvidia.com/gpu").map(|quantity| quantity.0.as_str())
}

#[tokio::test]
async fn karpenter_creates_and_deletes_a_node_for_a_node_claim() {
    let Some(cluster) = Cluster::start_or_skip(Setup::bare().with_all()).await else { return };
    cluster.apply(CLAIM).await.expect("applied");
    let claims: Api<DynamicObject> =
        Api::all_with(cluster.client(Role::Admin).await, &kind("karpenter.sh", "v1", "NodeClaim"));
    let claim = cluster
        .until("the claim is ready", async || {
            claims.get("muster-1").await.ok().filter(|claim| holds(claim, "Ready"))
        })
        .await;
    let name = claim.data["status"]["nodeName"].as_str().expect("a node").to_owned();
    let nodes = nodes(&cluster, Role::Observer).await;
    let node = nodes.get(&name).await.expect("the node is there");
    assert!(is_ready(&node));
    assert_eq!(gpus(&node), Some("8"));
    assert_eq!(label(&node, "topology.kubernetes.io/zone"), Some("zone-b"));
    assert_eq!(label(&node, "node.kubernetes.io/instance-type"), Some("gpu8"));
    // Created by a Job, so that controllers, scheduler and kwok take part too.
    cluster.apply(JOB).await.expect("applied");
    let pods = pods(&cluster, Role::Observer).await;
    let pod = cluster.until("a pod of the job is bound", async || {
        let list = pods.list(&Default::default()).await.ok()?;
        list.items.into_iter().find_map(|pod| pod.spec?.node_name)
    });
    assert_eq!(pod.await, name);
    claims.delete("muster-1", &DeleteParams::default()).await.expect("deleted");
    cluster
        .until("claim and node are gone", async || {
            let gone = async |found| matches!(found, Ok(None));
            (gone(claims.get_opt("muster-1").await.map(|found| found.map(drop))).await
                && gone(nodes.get_opt(&name).await.map(|found| found.map(drop))).await)
                .then_some(())
        })
        .await;
}

const JOB: &str = "
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: default}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: worker, image: none, resources: {limits: {nvidia.com/gpu: 8}}}]
";
