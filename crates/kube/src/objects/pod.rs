//! Pods.

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

/// The gate by which pods of any scheduler are held until Muster has room for the whole gang.
pub const GATE: &str = "muster.sh/gang";
/// Written on a pod of another scheduler when its gate is lifted: the node that its seat is on.
pub const ASSIGNED_NODE: &str = "muster.sh/assigned-node";
/// Written beside it when it was Muster that told the pod to go to one node only.
pub const NODE_SELECTOR_ADDED: &str = "muster.sh/node-selector-added";

/// The condition of a released pod that stands for itself: its message is the node. Tenants cannot write conditions.
pub const SEATED: &str = "muster.sh/Seated";

/// What a pod is told that Muster sends away.
pub const EVICTION_MESSAGE: &str = "Muster stops the whole gang";

/// A pod, as far as scheduling goes.
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
    /// Only while they are taken in: see [`Pod::count_allocated`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    container_statuses: Vec<ContainerStatus>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    init_container_statuses: Vec<ContainerStatus>,
}

/// What a container has been given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ContainerStatus {
    name: String,
    allocated_resources: BTreeMap<String, Amount>,
    resources: Option<Resources>,
}

impl Pod {
    /// Where it was put.
    pub fn node(&self) -> Option<&str> {
        self.spec.node_name.as_deref().filter(|name| !name.is_empty())
    }
    /// Whether it has run to its end and takes nothing any more.
    pub fn is_finished(&self) -> bool {
        matches!(&*self.status.phase, "Succeeded" | "Failed")
    }
    pub fn has_succeeded(&self) -> bool {
        self.status.phase == "Succeeded"
    }
    /// Whether somebody has asked for its end.
    pub fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }
    /// Whether Muster is sending it away.
    pub fn is_evicted_by_muster(&self) -> bool {
        let told =
            |one: &Condition| one.kind == "DisruptionTarget" && one.message == EVICTION_MESSAGE;
        self.status.conditions.iter().any(told)
    }
    /// Whether it must not meet certain others, and so they must not meet it.
    pub fn has_anti_affinity(&self) -> bool {
        let affinity = self.spec.affinity.as_ref();
        let away = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
        away.is_some_and(|away| !away.required.is_empty())
    }
    /// Whether it waits for Muster to lift its gate.
    pub fn has_gate(&self) -> bool {
        self.spec.scheduling_gates.iter().any(|gate| gate.name == GATE)
    }
    /// Whether somebody else holds it back from being scheduled.
    pub fn has_foreign_gate(&self) -> bool {
        self.spec.scheduling_gates.iter().any(|gate| gate.name != GATE)
    }
    /// The node it was let go to, for another scheduler to put it there.
    pub fn assigned_node(&self) -> Option<&str> {
        let seat = self.metadata.annotations.as_ref()?.get(ASSIGNED_NODE)?;
        Some(&**seat).filter(|seat| !seat.is_empty())
    }
    /// Whether its status says that Muster has released it to this node.
    pub fn is_seated_on(&self, node: &str) -> bool {
        let said =
            |one: &Condition| one.kind == SEATED && one.status == "True" && one.message == node;
        self.status.conditions.iter().any(said)
    }
    /// Whether an annotation says that the node selector is Muster's.
    pub fn has_added_selector(&self) -> bool {
        self.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(NODE_SELECTOR_ADDED))
    }
    /// What its containers were given and have not given back counts as asked for. Since Kubernetes 1.33 a pod may come to ask
    /// for less while it runs, and has what it had until its kubelet has seen to it.
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

    /// Takes out what Muster itself told it when its gate was lifted. Members that are alike stay alike, although each
    /// is told another node.
    pub fn remove_added_selector(&mut self) {
        if self.has_added_selector() {
            self.spec.node_selector.remove(HOSTNAME);
        }
    }
}

/// Whether one amount of a resource is more than another. What cannot be read is not.
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
