//! One cluster with two namespaces: the tenant's, and the victim's.

use std::ops::Deref;

use k8s_openapi::api::core::v1::{Event, Pod};
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, ListParams};
use muster_testkit::cluster::{Part, Role, Setup};
use serde_json::Value;

use crate::fixture::clusters::cluster_with_values;
use crate::observer::{GANG, Kind, LEAST, ObservedCluster};

/// The namespace in which the tenant may edit.
pub(crate) const TENANT: &str = "team-a";
/// The namespace of the victim, which the tenant must not be able to harm.
pub(crate) const VICTIM: &str = "team-b";

/// The two namespaces, and the rights of the tenant: the built-in `edit` role and the chart's additions to it, in
/// `team-a`. The aggregated roles are bound by name, since the cluster has no controller that aggregates them.
const TENANTS: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: team-a}
---
apiVersion: v1
kind: Namespace
metadata: {name: team-b}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: edit, namespace: team-a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: 'system:aggregate-to-edit'}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: tenant}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: view, namespace: team-a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: 'system:aggregate-to-view'}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: tenant}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: muster-edit, namespace: team-a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: muster-edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: tenant}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: muster-view, namespace: team-a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: muster-view}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: tenant}]
";

/// A cluster shared by a tenant and a victim.
pub(crate) struct Tenancy {
    cluster: ObservedCluster,
}

impl Deref for Tenancy {
    type Target = ObservedCluster;

    fn deref(&self) -> &ObservedCluster {
        &self.cluster
    }
}

impl Tenancy {
    /// Nodes of 8 GPUs each, simulated by kwok, and no controller yet.
    pub(crate) async fn start(nodes: u32) -> Option<Self> {
        Self::with(nodes, Setup::bare().with(Part::Kwok)).await
    }

    /// The same with more parts of Kubernetes.
    pub(crate) async fn with(nodes: u32, setup: Setup) -> Option<Self> {
        Self::with_values(nodes, setup, &[]).await
    }

    /// The same without the chart's admission policies: the checks of the controller itself are tested there.
    pub(crate) async fn without_policies(nodes: u32, setup: Setup) -> Option<Self> {
        let off = "admission.protectMarks=false,admission.checkQueues=false,\
                   admission.stampUsers=false,admission.scheduleNamespaces=false";
        Self::with_values(nodes, setup, &["--set", off]).await
    }

    async fn with_values(nodes: u32, setup: Setup, values: &[&str]) -> Option<Self> {
        let cluster = cluster_with_values(nodes, setup, values).await?;
        cluster.apply(TENANTS).await.expect("two namespaces");
        Some(Self { cluster })
    }

    /// Applies objects as the tenant. The error is the message of the API server.
    pub(crate) async fn attempt(&self, yaml: &str) -> Result<(), String> {
        self.apply_as(Role::Tenant, yaml).await.map_err(|refusal| refusal.to_string())
    }

    /// Applies objects that the API server must accept from the tenant.
    pub(crate) async fn tenant_applies(&self, yaml: &str) {
        let mut last = String::new();
        self.until("the tenant's objects are taken", async || {
            let Err(refusal) = self.attempt(yaml).await else { return Some(()) };
            if refusal != last {
                eprintln!("refused: {refusal}");
                last = refusal;
            }
            None
        })
        .await;
    }

    /// Submits a gang of the victim and waits until every member is bound.
    pub(crate) async fn victim_starts(&self, name: &str, members: u32, gpus: u32) {
        self.apply(&gang(VICTIM, name, members, gpus, "")).await.expect("the victim's gang");
        self.until_bound(VICTIM, name, members as usize).await;
    }

    /// Waits until this many pods with this prefix are bound.
    pub(crate) async fn until_bound(&self, namespace: &str, prefix: &str, count: usize) {
        self.until(&format!("{count} pods of {namespace}/{prefix} are bound"), async || {
            (self.bound(namespace, prefix).await == count).then_some(())
        })
        .await;
    }

    /// How many pods with this prefix are bound and not terminating.
    pub(crate) async fn bound(&self, namespace: &str, prefix: &str) -> usize {
        let is_bound = |pod: &Pod| {
            pod.name_any().starts_with(prefix)
                && pod.metadata.deletion_timestamp.is_none()
                && pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())
        };
        self.pods(namespace).await.iter().filter(|pod| is_bound(pod)).count()
    }

    /// Every pod of a namespace.
    pub(crate) async fn pods(&self, namespace: &str) -> Vec<Pod> {
        let pods: Api<Pod> = Api::namespaced(self.client(Role::Observer).await, namespace);
        pods.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default()
    }

    /// The status of a Gang.
    pub(crate) async fn status(&self, namespace: &str, gang: &str) -> Value {
        let gangs: Api<DynamicObject> = Api::namespaced_with(
            self.client(Role::Observer).await,
            namespace,
            &Kind::Gang.resource(),
        );
        let gang = gangs.get(gang).await.ok();
        gang.and_then(|gang| gang.data.get("status").cloned()).unwrap_or_default()
    }

    /// Waits until the status of a Gang matches. Every status on the way is printed.
    pub(crate) async fn until_status(
        &self,
        namespace: &str,
        gang: &str,
        is_it: impl Fn(&Value) -> bool,
    ) {
        let mut last = Value::Null;
        self.until(&format!("the status of {namespace}/{gang}"), async || {
            let status = self.status(namespace, gang).await;
            if status != last {
                eprintln!("{namespace}/{gang}: {status}");
                last = status;
            }
            is_it(&last).then_some(())
        })
        .await;
    }

    /// Waits until an event in a namespace has this reason, and this text in its message.
    pub(crate) async fn until_event(&self, namespace: &str, reason: &str, words: &str) {
        let events: Api<Event> = Api::namespaced(self.client(Role::Observer).await, namespace);
        let is_it = |event: &Event| {
            event.reason.as_deref() == Some(reason)
                && event.message.as_deref().is_some_and(|reported| reported.contains(words))
        };
        self.until(&format!("an event {reason} in {namespace}: {words}"), async || {
            let all = events.list(&ListParams::default()).await.ok()?.items;
            all.iter().any(is_it).then_some(())
        })
        .await;
    }
}

/// A Gang with a pod template; `more` is YAML of its spec.
pub(crate) fn gang(namespace: &str, name: &str, members: u32, gpus: u32, more: &str) -> String {
    format!(
        "
---
apiVersion: muster.sh/v1alpha1
kind: Gang
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  {more}
  roles:
  - {{name: worker, min: {members}, resources: {{nvidia.com/gpu: {gpus}, cpu: 1}}, template: {{
      metadata: {{labels: {{{GANG}: {namespace}-{name}}}, annotations: {{{LEAST}: '{members}'}}}},
      spec: {{containers: [{{name: worker, image: none}}]}}}}}}
"
    )
}
