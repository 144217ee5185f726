//! Pods: the fields that scheduling reads, and Muster's marks on them.

use std::collections::BTreeMap;
use std::mem::take;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use muster_api::pod::{Amount, PodSpec, Resources};
use muster_core::quantity::Quantity;
use muster_core::resource::base_units;
use muster_core::topology::HOSTNAME;
use serde::{Deserialize, Serialize};

use crate::objects::resource::{Condition, served};

/// The scheduling gate that holds pods of any scheduler until the whole gang has seats.
pub const GATE: &str = "muster.sh/gang";
/// The annotation on a pod of another scheduler whose gate was removed: the node of its seat.
pub const ASSIGNED_NODE: &str = "muster.sh/assigned-node";
/// The annotation beside it that marks the node selector for that node as added by Muster.
pub const NODE_SELECTOR_ADDED: &str = "muster.sh/node-selector-added";

/// The condition of an ungated pod that proves its seat: the message is the node. Tenants cannot write conditions.
pub const SEATED: &str = "muster.sh/Seated";

/// The message of the condition `DisruptionTarget` on a pod that Muster evicts.
pub const EVICTION_MESSAGE: &str = "Muster stops the whole gang";

/// A pod with the fields that scheduling reads.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pod {
    #[serde(deserialize_with = "super::metadata::kept")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: PodSpec,
    #[serde(default)]
    pub status: PodStatus,
}

served!(Pod, NamespaceResourceScope, "", "v1", "pods");

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    pub phase: String,
    pub nominated_node_name: Option<String>,
    pub conditions: Vec<Condition>,
    pub start_time: Option<Time>,
    /// Present only until the pod is cached: see [`Pod::count_allocated`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    container_statuses: Vec<ContainerStatus>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    init_container_statuses: Vec<ContainerStatus>,
}

/// The resources that a container was allocated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ContainerStatus {
    name: String,
    allocated_resources: BTreeMap<String, Amount>,
    resources: Option<Resources>,
}

impl Pod {
    /// The node that the pod is bound to.
    pub fn node(&self) -> Option<&str> {
        self.spec.node_name.as_deref().filter(|name| !name.is_empty())
    }
    /// Whether the pod is in a terminal phase and uses no resources any more.
    pub fn is_finished(&self) -> bool {
        matches!(&*self.status.phase, "Succeeded" | "Failed")
    }
    pub fn has_succeeded(&self) -> bool {
        self.status.phase == "Succeeded"
    }
    /// Whether the pod is being deleted.
    pub fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }
    /// Whether Muster is evicting the pod.
    pub fn is_evicted_by_muster(&self) -> bool {
        let is_eviction =
            |one: &Condition| one.kind == "DisruptionTarget" && one.message == EVICTION_MESSAGE;
        self.status.conditions.iter().any(is_eviction)
    }
    /// Whether the pod has required anti-affinity, which also restricts other pods.
    pub fn has_anti_affinity(&self) -> bool {
        let affinity = self.spec.affinity.as_ref();
        let anti_affinity = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
        anti_affinity.is_some_and(|anti_affinity| !anti_affinity.required.is_empty())
    }
    /// Whether the pod has Muster's scheduling gate.
    pub fn has_gate(&self) -> bool {
        self.spec.scheduling_gates.iter().any(|gate| gate.name == GATE)
    }
    /// Whether the pod has a scheduling gate of another controller.
    pub fn has_foreign_gate(&self) -> bool {
        self.spec.scheduling_gates.iter().any(|gate| gate.name != GATE)
    }
    /// The node of its seat, where another scheduler is to bind it.
    pub fn assigned_node(&self) -> Option<&str> {
        let seat = self.metadata.annotations.as_ref()?.get(ASSIGNED_NODE)?;
        Some(&**seat).filter(|seat| !seat.is_empty())
    }
    /// Whether its condition proves that its seat is on this node.
    pub fn is_seated_on(&self, node: &str) -> bool {
        let is_proof =
            |one: &Condition| one.kind == SEATED && one.status == "True" && one.message == node;
        self.status.conditions.iter().any(is_proof)
    }
    /// Whether an annotation says that Muster added the node selector.
    pub fn has_added_selector(&self) -> bool {
        self.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(NODE_SELECTOR_ADDED))
    }
    /// Raises the requests of containers to what they are still allocated. Since Kubernetes 1.33 a running pod may be
    /// resized to lower requests, and keeps its allocation until the kubelet has shrunk it.
    pub fn count_allocated(&mut self) {
        let PodStatus { container_statuses, init_container_statuses, .. } = &mut self.status;
        let (main, init) = (take(container_statuses), take(init_container_statuses));
        let PodSpec { containers, init_containers, .. } = &mut self.spec;
        for (containers, statuses) in [(containers, main), (init_containers, init)] {
            for ContainerStatus { name, allocated_resources, resources } in statuses {
                let Some(container) = containers.iter_mut().find(|one| one.name == name) else {
                    continue;
                };
                let actual = resources.unwrap_or_default().requests;
                for (resource, held) in allocated_resources.into_iter().chain(actual) {
                    if let Some(asked) = container.resources.requests.get_mut(&resource)
                        && is_more(&resource, &held, asked)
                    {
                        *asked = held;
                    }
                }
            }
        }
    }

    /// Removes the node selector that Muster added when it removed the gate. Equal members stay equal, although each is
    /// assigned another node.
    pub fn remove_added_selector(&mut self) {
        if self.has_added_selector() {
            self.spec.node_selector.remove(HOSTNAME);
        }
    }
}

/// Whether one amount of a resource is more than another; false if either cannot be parsed.
fn is_more(resource: &str, one: &Amount, other: &Amount) -> bool {
    let units = |amount: &Amount| base_units(resource, amount.0.parse::<Quantity>().ok()?);
    one != other && units(one).zip(units(other)).is_some_and(|(one, other)| one > other)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::objects::pod::*;

    #[test]
    fn pod_resized_down_holds_its_allocation_until_it_is_reduced() {
        let cpu = |allocated: &str, actual: &str| {
            let mut pod: Pod = serde_json::from_value(json!({
                "metadata": {"name": "a"},
                "spec": {"containers": [
                    {"name": "main", "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}},
                    {"name": "beside", "resources": {}},
                ]},
                "status": {"phase": "Running", "containerStatuses": [
                    {"name": "main", "allocatedResources": {"cpu": allocated},
                        "resources": {"requests": {"cpu": actual, "memory": "odd"}}},
                    {"name": "beside", "allocatedResources": {"cpu": "64"}},
                    {"name": "unheard-of", "allocatedResources": {"cpu": "64"}},
                ]},
            }))
            .expect("a pod");
            pod.count_allocated();
            assert!(pod.status.container_statuses.is_empty(), "nothing is kept of it");
            assert!(pod.spec.containers[1].resources.is_empty());
            assert_eq!(pod.spec.containers[0].resources.requests["memory"].0, "1Gi");
            pod.spec.containers[0].resources.requests["cpu"].0.clone()
        };
        assert_eq!(cpu("2", "2000m"), "2");
        assert_eq!(cpu("4", "2"), "4", "it is allocated");
        assert_eq!(cpu("2", "4"), "4", "it is not given back");
        assert_eq!(cpu("1", "1"), "2", "it will have more");
    }
}
