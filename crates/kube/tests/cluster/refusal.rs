//! A server that refuses one thing for as long as a test wants: by a policy of its own, not by a pretended answer.

use kube::api::{Api, DeleteParams, DynamicObject};
use kube::core::GroupVersionKind;
use muster_testkit::cluster::{Cluster, Role};

/// Refuses to change objects of this kind that are called so, unless this holds of them then.
pub(crate) async fn refuse(cluster: &Cluster, of: (&str, &str), name: &str, unless: &str) {
    let named = format!("object.metadata.name == '{name}'");
    deny(cluster, of, "UPDATE", &named, unless).await;
}

/// Refuses to make objects of this kind.
pub(crate) async fn refuse_new(cluster: &Cluster, of: (&str, &str)) {
    deny(cluster, of, "CREATE", "true", "false").await;
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
    let client = cluster.client(Role::Admin).await;
    let kind = "ValidatingAdmissionPolicyBinding";
    let kind = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind);
    let (kind, _) = kube::discovery::pinned_kind(&client, &kind).await.expect("it is served");
    let bindings: Api<DynamicObject> = Api::all_with(client, &kind);
    bindings.delete("not-yet", &DeleteParams::default()).await.expect("removed");
}
