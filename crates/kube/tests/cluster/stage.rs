//! What every test starts from.

use k8s_openapi::api::core::v1::{Event, Pod};
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Preconditions};
use muster_kube::objects::NodeClaim;
use muster_testkit::cluster::{Cluster, Part, Role, Setup};
use muster_testkit::testbed::Tool;
use serde_json::Value;

use crate::chart;
use crate::observer::Observed;
use crate::words::{node, still_node};

/// A cluster with Karpenter and the controllers that make jobs' pods.
pub(crate) async fn cluster() -> Option<Observed> {
    let setup = Setup::bare().with(Part::ControllerManager).with(Part::Kwok).with(Part::Karpenter);
    with_muster(setup).await
}

/// The same with the stock scheduler.
pub(crate) async fn cluster_with_scheduler() -> Option<Observed> {
    with_muster(Setup::bare().with_all()).await
}

/// A cluster with nodes that are there, and nobody who makes anything.
pub(crate) async fn small_cluster(nodes: u32) -> Option<Observed> {
    with_nodes(nodes, Setup::bare().with(Part::Kwok)).await
}

/// A cluster with nodes that are there, and these who make it move.
pub(crate) async fn with_nodes(nodes: u32, setup: Setup) -> Option<Observed> {
    with_values(nodes, setup, &[]).await
}

/// The same with values of the chart that are not its own.
pub(crate) async fn with_values(nodes: u32, setup: Setup, values: &[&str]) -> Option<Observed> {
    let cluster = with_chart(setup, values).await?;
    for at in 0..nodes {
        cluster.apply(&node(&format!("n{at}"))).await.expect("a node");
    }
    Some(cluster)
}

/// A cluster with nodes whose pods neither begin nor end but by the test, and these who make it move.
pub(crate) async fn still(nodes: u32, setup: Setup) -> Option<Observed> {
    let cluster = with_nodes(0, setup).await?;
    for at in 0..nodes {
        cluster.apply(&still_node(&format!("n{at}"))).await.expect("a node");
    }
    Some(cluster)
}

/// Whoever submits work in these tests may use every queue; tests of tenants have a user that may not.
const USERS: &str = "
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: testbed-queues}
rules: [{apiGroups: [muster.sh], resources: [queues], verbs: [use]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: testbed-queues}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: testbed-queues}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: user}]
";

/// A cluster in which the chart is installed, under observation. No replica runs: tests start the controller themselves.
async fn with_muster(setup: Setup) -> Option<Observed> {
    with_chart(setup, &[]).await
}

async fn with_chart(setup: Setup, values: &[&str]) -> Option<Observed> {
    let cluster = Cluster::start_or_skip(setup.needing(Tool::Helm)).await?;
    let values = [["--set", "replicas=0"].as_slice(), values].concat();
    let objects = cluster.rendered(chart::RELEASE, &values).expect("a chart");
    let objects = format!("{}\n---\n{objects}{USERS}", chart::NAMESPACE);
    cluster.apply(&objects).await.expect("the chart is good");
    Some(Observed::new(cluster).await)
}

/// Submits something as a user does, who tries again when the server is too busy to answer.
pub(crate) async fn submit(cluster: &Cluster, yaml: &str) {
    cluster.until("it is submitted", async || cluster.apply_as(Role::User, yaml).await.ok()).await;
}

/// Pods that were put on a node.
pub(crate) async fn bound(cluster: &Cluster) -> usize {
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Observer).await, "default");
    let all = pods.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default();
    all.iter().filter(|pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())).count()
}

/// Pods whose name begins so that were put on a node.
pub(crate) async fn bound_of(cluster: &Cluster, begin: &str) -> usize {
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Observer).await, "default");
    let all = pods.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default();
    let mine =
        all.iter().filter(|pod| pod.metadata.name.as_deref().unwrap_or("").starts_with(begin));
    mine.filter(|pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())).count()
}

/// Waits until every pod that is not left out was told that members of its gang are missing.
pub(crate) async fn until_members_are_missed(cluster: &Cluster, is_out: impl Fn(&Pod) -> bool) {
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Observer).await, "default");
    let is_told = |pod: &Pod| {
        let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let mut reasons = conditions.filter_map(|one| one.reason.as_deref());
        reasons.any(|reason| reason == "WaitingForMembers")
    };
    let mut last = Vec::new();
    cluster
        .until("everybody misses members", async || {
            let all = pods.list(&ListParams::default()).await.ok()?.items;
            let left = all.iter().filter(|pod| !is_out(pod) && !is_told(pod));
            let left: Vec<String> = left.map(ResourceExt::name_any).collect();
            if left != last {
                eprintln!("not told: {left:?}");
                last = left;
            }
            last.is_empty().then_some(())
        })
        .await;
}

/// Removes pods whose name begins so, at once.
pub(crate) async fn remove_pods(cluster: &Cluster, begin: &str) {
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Admin).await, "default");
    let all = pods.list(&ListParams::default()).await.expect("pods").items;
    let mine = all.into_iter().filter(|pod| pod.name_any().starts_with(begin));
    let_end(cluster, &mine.collect::<Vec<_>>()).await;
}

/// Pods whose name begins so that were told to go and are still there.
pub(crate) async fn leaving(cluster: &Cluster, begin: &str) -> Vec<Pod> {
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Observer).await, "default");
    let all = pods.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default();
    let is_it =
        |pod: &Pod| pod.metadata.deletion_timestamp.is_some() && pod.name_any().starts_with(begin);
    all.into_iter().filter(is_it).collect()
}

/// Pods that were told to go are gone, as if their kubelet had seen to it.
pub(crate) async fn let_end(cluster: &Cluster, pods: &[Pod]) {
    let all: Api<Pod> = Api::namespaced(cluster.client(Role::Admin).await, "default");
    for pod in pods {
        let uid = pod.metadata.uid.clone();
        let now = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(Preconditions { uid, resource_version: None }),
            ..DeleteParams::default()
        };
        all.delete(&pod.name_any(), &now).await.expect("it ends");
    }
}

/// Waits until so many nodes are asked of Karpenter.
pub(crate) async fn until_claims(cluster: &Cluster, count: usize) -> Vec<NodeClaim> {
    let claims: Api<NodeClaim> = Api::all(cluster.client(Role::Observer).await);
    cluster
        .until(&format!("there are {count} claims"), async || {
            let all = claims.list(&ListParams::default()).await.ok()?.items;
            (all.len() == count).then_some(all)
        })
        .await
}

/// Objects of a kind that is not Kubernetes' own.
pub(crate) async fn objects(
    cluster: &Cluster,
    (group, version): (&str, &str),
    (kind, plural): (&str, &str),
) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: format!("{group}/{version}"),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    };
    Api::namespaced_with(cluster.client(Role::Observer).await, "default", &resource)
}

/// What a gang's object says of it.
pub(crate) async fn gang_status(cluster: &Cluster, name: &str) -> Value {
    let gangs = objects(cluster, ("muster.sh", "v1alpha1"), ("Gang", "gangs")).await;
    let gang = gangs.get(name).await.ok();
    gang.and_then(|gang| gang.data.get("status").cloned()).unwrap_or_default()
}

/// Waits until a gang's object says so. What it says instead is told when it never does.
pub(crate) async fn until_told(cluster: &Cluster, name: &str, is_said: impl Fn(&Value) -> bool) {
    let mut last = Value::Null;
    cluster
        .until(&format!("{name} is told"), async || {
            let said = gang_status(cluster, name).await;
            if said != last {
                eprintln!("{name}: {said}");
                last = said;
            }
            is_said(&last).then_some(())
        })
        .await;
}

/// Waits until an event of a gang has this reason, and these words in its message.
pub(crate) async fn until_event(cluster: &Cluster, gang: &str, reason: &str, words: &str) {
    let events: Api<Event> = Api::namespaced(cluster.client(Role::Observer).await, "default");
    let is_it = |event: &Event| {
        event.involved_object.name.as_deref() == Some(gang)
            && event.reason.as_deref() == Some(reason)
            && event.message.as_deref().is_some_and(|said| said.contains(words))
    };
    cluster
        .until(&format!("{gang} has an event {reason}: {words}"), async || {
            let all = events.list(&ListParams::default()).await.ok()?.items;
            all.iter().any(is_it).then_some(())
        })
        .await;
}
