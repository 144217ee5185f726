//! The test bed itself: what the tests of the Kubernetes host rely on.

mod gangs;
mod life;
mod nodes;
mod rights;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use muster_testkit::cluster::{Cluster, Role};

async fn pods(cluster: &Cluster, role: Role) -> Api<Pod> {
    Api::namespaced(cluster.client(role).await, "default")
}

async fn nodes(cluster: &Cluster, role: Role) -> Api<Node> {
    Api::all(cluster.client(role).await)
}

/// Objects of a kind without a Rust type here.
fn kind(group: &str, version: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

/// Whether a condition in the status is `True`.
fn holds(object: &DynamicObject, condition: &str) -> bool {
    let conditions = object.data["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|one| one["type"] == condition && one["status"] == "True")
}

fn is_running(pod: &Pod) -> bool {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running")
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|one| one.type_ == "Ready" && one.status == "True")
}

/// A node managed by kwok.
fn node_yaml(name: &str) -> String {
    format!(
        "apiVersion: v1
kind: Node
metadata: {{name: {name}, annotations: {{kwok.x-k8s.io/node: fake}}, labels: {{kubernetes.io/hostname: {name}}}}}
status:
  allocatable: {{cpu: '96', memory: 1000Gi, pods: '110', nvidia.com/gpu: '8'}}
  capacity: {{cpu: '96', memory: 1000Gi, pods: '110', nvidia.com/gpu: '8'}}
"
    )
}

/// A pod of so many GPUs; `more` are lines of its spec.
fn pod_yaml(name: &str, gpus: u32, more: &str) -> String {
    format!(
        "apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: default}}
spec:
  containers:
  - {{name: worker, image: none, resources: {{limits: {{nvidia.com/gpu: {gpus}}}}}}}
{more}"
    )
}
