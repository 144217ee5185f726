//! What every test starts from.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use muster_testkit::cluster::{Cluster, Part, Role, Setup};

use crate::words::node;

/// A cluster with Karpenter and the controllers that make jobs' pods.
pub(crate) async fn cluster() -> Option<Cluster> {
    let setup = Setup::bare().with(Part::ControllerManager).with(Part::Kwok).with(Part::Karpenter);
    with_muster(setup).await
}

/// A cluster with nodes that are there, and nobody who makes anything.
pub(crate) async fn small_cluster(nodes: u32) -> Option<Cluster> {
    let cluster = with_muster(Setup::bare().with(Part::Kwok)).await?;
    for at in 0..nodes {
        cluster.apply(&node(&format!("n{at}"))).await.expect("a node");
    }
    Some(cluster)
}

/// A cluster with Muster's kinds and rights.
async fn with_muster(setup: Setup) -> Option<Cluster> {
    let cluster = Cluster::start_or_skip(setup).await?;
    let crds = muster_api::crd::definitions();
    let crds: String = crds.iter().map(|crd| format!("---\n{}\n", crd.object)).collect();
    cluster.apply(&crds).await.expect("the CRDs are good");
    cluster.apply(&rights()).await.expect("the rights are good");
    Some(cluster)
}

/// What the chart gives Muster, and nothing else. Its lines in braces name a release and are left out.
fn rights() -> String {
    let plain = |text: &str| -> String {
        text.lines().filter(|line| !line.contains("{{")).map(|line| format!("{line}\n")).collect()
    };
    let cluster_role = plain(include_str!("../../../../charts/muster/templates/clusterrole.yaml"));
    let role = plain(include_str!("../../../../charts/muster/templates/role.yaml"));
    let role = role
        .split("---")
        .next()
        .unwrap_or_default()
        .replace("  name: muster\n", "  name: muster\n  namespace: muster-system\n");
    format!("{NAMESPACE}\n---\n{cluster_role}\n---\n{role}\n---\n{BINDINGS}")
}

const NAMESPACE: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: muster-system}
";

const BINDINGS: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: muster}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: muster}
subjects: [{kind: ServiceAccount, name: muster, namespace: muster-system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: muster, namespace: muster-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: muster}
subjects: [{kind: ServiceAccount, name: muster, namespace: muster-system}]
";

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
