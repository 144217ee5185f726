//! All that is there, as it was last seen.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::DynamicObject;

use super::pods::{has_gate, is_over, node_of};

/// Objects by `namespace/name`, or by name where they have no namespace.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) pods: BTreeMap<String, Pod>,
    pub(super) nodes: BTreeMap<String, Node>,
    pub(super) claims: BTreeMap<String, DynamicObject>,
    pub(super) orders: BTreeMap<String, DynamicObject>,
    pub(super) pools: BTreeMap<String, DynamicObject>,
    pub(super) queues: BTreeMap<String, DynamicObject>,
    pub(super) gangs: BTreeMap<String, DynamicObject>,
    pub(super) jobs: BTreeMap<String, DynamicObject>,
    /// Pods that have Muster's gate, or had it.
    pub(super) gated: BTreeSet<String>,
}

impl Seen {
    /// Pods that are on a node and not over.
    pub(super) fn at_work(&self) -> impl Iterator<Item = (&String, &Pod)> {
        self.pods.iter().filter(|(_, pod)| node_of(pod).is_some() && !is_over(pod))
    }

    /// Whether a pod is Muster's to start: it asks for it, or has its gate.
    pub(super) fn is_musters(&self, key: &str, pod: &Pod) -> bool {
        let scheduler = pod.spec.as_ref().and_then(|spec| spec.scheduler_name.as_deref());
        scheduler == Some("muster") || has_gate(pod) || self.gated.contains(key)
    }
}
