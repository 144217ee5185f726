//! A server that refuses one thing for as long as a test wants: by a policy of its own, not by a pretended answer.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use muster_testkit::cluster::{Cluster, Role};
use serde_json::json;

/// Refuses to change objects of this kind that are called so, unless this holds of them then.
pub(crate) async fn refuse(cluster: &Cluster, of: (&str, &str), name: &str, unless: &str) {
    let named = format!("object.metadata.name == '{name}'");
    deny(cluster, of, "UPDATE", &named, unless).await;
}

/// Refuses to make Orders, from when this returns on: a policy holds a moment after it is written.
pub(crate) async fn refuse_orders(cluster: &Cluster) {
    deny(cluster, ("muster.sh", "orders"), "CREATE", "true", "false").await;
    let orders = objects(cluster, GroupVersionKind::gvk("muster.sh", "v1alpha1", "Order")).await;
    let order: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "muster.sh/v1alpha1", "kind": "Order", "metadata": {"name": "order-1"},
        "spec": {
            "number": 1, "gang": {"namespace": "default", "name": "nobody"},
            "placements": [{"role": "worker", "members": 1, "node": "nowhere"}],
            "deadline": "2026-11-01T10:00:00Z",
        },
    }))
    .expect("an order");
    let only_asked = PostParams { dry_run: true, ..PostParams::default() };
    cluster
        .until("orders are refused", async || {
            let refused = orders.create(&only_asked, &order).await.err()?;
            refused.to_string().contains("not yet").then_some(())
        })
        .await;
}

/// Refuses to make pods in a namespace, from when this returns on.
pub(crate) async fn refuse_pods_of(cluster: &Cluster, namespace: &str) {
    let which = format!("request.namespace == '{namespace}'");
    deny(cluster, ("", "pods"), "CREATE", &which, "false").await;
    let pods: Api<Pod> = Api::namespaced(cluster.client(Role::Admin).await, namespace);
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "probe"}, "spec": {"containers": [{"name": "a", "image": "none"}]},
    }))
    .expect("a pod");
    let only_asked = PostParams { dry_run: true, ..PostParams::default() };
    cluster
        .until("pods are refused", async || {
            let refused = pods.create(&only_asked, &pod).await.err()?;
            refused.to_string().contains("not yet").then_some(())
        })
        .await;
}

async fn deny(
    cluster: &Cluster,
    (group, plural): (&str, &str),
    operation: &str,
    which: &str,
    unless: &str,
) {
    let policy = format!(
        "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: not-yet}}
spec:
  failurePolicy: Fail
  matchConstraints: {{resourceRules: [{{apiGroups: ['{group}'], apiVersions: ['*'], operations: [{operation}], resources: [{plural}]}}]}}
  matchConditions: [{{name: which, expression: \"{which}\"}}]
  validations: [{{expression: '{unless}', message: not yet}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: not-yet}}
spec: {{policyName: not-yet, validationActions: [Deny]}}
"
    );
    cluster.apply(&policy).await.expect("a policy");
}

/// Refuses nothing any more.
pub(crate) async fn allow(cluster: &Cluster) {
    let kind = "ValidatingAdmissionPolicyBinding";
    let kind = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind);
    let bindings = objects(cluster, kind).await;
    bindings.delete("not-yet", &DeleteParams::default()).await.expect("removed");
}

/// Objects of a kind that has no namespace.
async fn objects(cluster: &Cluster, kind: GroupVersionKind) -> Api<DynamicObject> {
    let client = cluster.client(Role::Admin).await;
    let (kind, _) = kube::discovery::pinned_kind(&client, &kind).await.expect("it is served");
    Api::all_with(client, &kind)
}
