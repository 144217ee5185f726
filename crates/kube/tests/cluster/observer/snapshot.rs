//! The last observed state of every object.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::DynamicObject;

use super::pod_fields::{has_gate, is_finished, node_of};

/// Objects by `namespace/name`, or by name where they have no namespace.
#[derive(Default)]
pub(crate) struct Snapshot {
    pub(crate) pods: BTreeMap<String, Pod>,
    pub(crate) nodes: BTreeMap<String, Node>,
    pub(crate) claims: BTreeMap<String, DynamicObject>,
    pub(crate) orders: BTreeMap<String, DynamicObject>,
    pub(crate) pools: BTreeMap<String, DynamicObject>,
    pub(crate) queues: BTreeMap<String, DynamicObject>,
    pub(crate) gangs: BTreeMap<String, DynamicObject>,
    pub(crate) jobs: BTreeMap<String, DynamicObject>,
    /// Pods that have Muster's gate, or had it.
    pub(crate) gated: BTreeSet<String>,
}

impl Snapshot {
    /// Pods that are bound and not finished.
    pub(crate) fn running_pods(&self) -> impl Iterator<Item = (&String, &Pod)> {
        self.pods.iter().filter(|(_, pod)| node_of(pod).is_some() && !is_finished(pod))
    }

    /// Whether Muster schedules a pod: by its scheduler name, or by Muster's gate.
    pub(crate) fn is_scheduled_by_muster(&self, key: &str, pod: &Pod) -> bool {
        let scheduler = pod.spec.as_ref().and_then(|spec| spec.scheduler_name.as_deref());
        scheduler == Some("muster") || has_gate(pod) || self.gated.contains(key)
    }
}
