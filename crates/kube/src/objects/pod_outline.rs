//! The outline of a pod: its node and its requests.
//!
//! A pod on a node uses its resources however large its labels, its affinity or its list of containers are. If it were
//! omitted, other pods would be placed where there is no room.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use muster_api::pod::{Amount, Container, PodSpec, Resources};
use muster_core::quantity::Quantity;
use muster_core::resource::{base_units, display_amount};

use crate::objects::pod::Pod;
use crate::objects::pod::PodStatus;

/// The most resource names that are kept. A node has a handful; those of Kubernetes and GPUs come first.
const RESOURCES_MAX: usize = 64;
/// The most owner references that are kept.
const OWNERS_MAX: usize = 4;

impl Pod {
    /// The pod without labels, annotations and constraints, and with one container that requests what all of them do.
    pub(crate) fn requests_only(&self) -> Self {
        let metadata = ObjectMeta {
            name: self.metadata.name.clone(),
            namespace: self.metadata.namespace.clone(),
            uid: self.metadata.uid.clone(),
            resource_version: self.metadata.resource_version.clone(),
            creation_timestamp: self.metadata.creation_timestamp.clone(),
            deletion_timestamp: self.metadata.deletion_timestamp.clone(),
            owner_references: self.metadata.owner_references.as_ref().map(|owners| {
                let counts = owners.iter().filter(|owner| owner.kind.len() < 64);
                counts.take(OWNERS_MAX).cloned().collect()
            }),
            ..ObjectMeta::default()
        };
        let few = |resources: &Resources| {
            resources.requests.len() + resources.limits.len() <= RESOURCES_MAX
        };
        let spec = PodSpec {
            containers: vec![Container {
                name: "all".to_owned(),
                resources: Resources {
                    requests: total_requests(&self.spec),
                    ..Resources::default()
                },
                ..Container::default()
            }],
            resources: self.spec.resources.clone().filter(few),
            overhead: self.spec.overhead.iter().take(RESOURCES_MAX).map(cloned).collect(),
            node_name: self.spec.node_name.clone(),
            scheduler_name: self.spec.scheduler_name.clone(),
            priority: self.spec.priority,
            ..PodSpec::default()
        };
        let mut status = PodStatus::default();
        status.phase.clone_from(&self.status.phase);
        status.start_time.clone_from(&self.status.start_time);
        Self { metadata, spec, status }
    }
}

fn cloned((name, amount): (&String, &Amount)) -> (String, Amount) {
    (name.clone(), amount.clone())
}

/// The requests of all containers of a pod together: the sum of those that run side by side, or the largest request of an
/// init container that runs before them. Amounts that cannot be parsed do not count.
fn total_requests(spec: &PodSpec) -> BTreeMap<String, Amount> {
    let mut sums: BTreeMap<(bool, &str), u64> = BTreeMap::new();
    let (sidecars, init): (Vec<&Container>, Vec<&Container>) =
        spec.init_containers.iter().partition(|one| one.is_sidecar());
    for container in spec.containers.iter().chain(sidecars) {
        for (name, units) in requests_of(container) {
            let sum =
                sums.entry((name.contains('/') && !name.ends_with("/gpu"), name)).or_default();
            *sum = sum.saturating_add(units);
        }
    }
    for container in init {
        for (name, units) in requests_of(container) {
            let sum =
                sums.entry((name.contains('/') && !name.ends_with("/gpu"), name)).or_default();
            *sum = (*sum).max(units);
        }
    }
    let first = sums.into_iter().take(RESOURCES_MAX);
    first
        .map(|((_, name), units)| {
            (name.to_owned(), Amount(display_amount(name, units).to_string()))
        })
        .collect()
}

fn requests_of(container: &Container) -> impl Iterator<Item = (&str, u64)> {
    let Resources { requests, limits } = &container.resources;
    let only_limited = limits.iter().filter(|(name, _)| !requests.contains_key(*name));
    requests.iter().chain(only_limited).filter_map(|(name, amount)| {
        Some((name.as_str(), base_units(name, amount.0.parse::<Quantity>().ok()?)?))
    })
}

#[cfg(test)]
mod tests {
    use muster_api::pod::GpuNames;
    use serde_json::json;

    use crate::objects::pod_outline::*;

    #[test]
    fn outline_requests_the_same_as_the_pod() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "a", "namespace": "n", "uid": "u", "labels": {"app": "x"}},
            "spec": {
                "nodeName": "n1", "nodeSelector": {"a": "b"},
                "containers": [
                    {"name": "a", "resources": {"requests": {"cpu": "1500m", "memory": "1Gi"}}},
                    {"name": "b", "resources": {"limits": {"cpu": 1, "nvidia.com/gpu": 2}}},
                ],
                "initContainers": [
                    {"name": "c", "resources": {"requests": {"memory": "4Gi"}}},
                    {"name": "d", "restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}},
                ],
                "overhead": {"cpu": "250m"},
            },
            "status": {"phase": "Running"},
        }))
        .expect("a pod");
        let outline = pod.requests_only();
        let request = |pod: &Pod| pod.spec.request(&BTreeMap::new(), &GpuNames::default());
        assert_eq!(request(&outline), request(&pod));
        assert_eq!(outline.node(), Some("n1"));
        assert!(outline.metadata.labels.is_none() && outline.spec.node_selector.is_empty());
    }
}
