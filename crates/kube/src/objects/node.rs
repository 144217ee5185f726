//! Nodes.

use std::collections::BTreeMap;

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use crate::objects::resource::{Condition, is_true, served};

/// A node, as far as scheduling goes: without images, addresses and volumes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Node {
    #[serde(deserialize_with = "super::metadata::kept")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: NodeSpec,
    #[serde(default)]
    pub status: NodeStatus,
}

served!(Node, ClusterResourceScope, "", "v1", "nodes");

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSpec {
    pub unschedulable: bool,
    pub taints: Vec<Taint>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Taint {
    pub key: String,
    pub value: String,
    pub effect: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeStatus {
    pub allocatable: BTreeMap<String, String>,
    pub conditions: Vec<Condition>,
}

/// Taints that say that a node is not ready yet, or not any more; they come and go with it.
const PASSING: [&str; 4] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.cloudprovider.kubernetes.io/uninitialized",
    "karpenter.sh/unregistered",
];
/// And those whose names begin so.
const PASSING_PREFIX: &str = "readiness.k8s.io/";

impl Node {
    /// Whether members could run on it now: it says so itself, and nothing on it says otherwise.
    pub fn is_ready(&self) -> bool {
        is_true(&self.status.conditions, "Ready")
            && !self.spec.unschedulable
            && self.metadata.deletion_timestamp.is_none()
            && !self.spec.taints.iter().any(Taint::is_passing)
    }
}

impl Taint {
    /// Whether it says that the node is not ready.
    pub fn is_passing(&self) -> bool {
        PASSING.contains(&&*self.key) || self.key.starts_with(PASSING_PREFIX)
    }
}
