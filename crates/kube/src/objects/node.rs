//! Nodes: the fields that scheduling reads.

use std::collections::BTreeMap;

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use crate::objects::resource::{Condition, is_true, served};

/// A node with the fields that scheduling reads: without images, addresses and volumes.
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

/// Taints that mark a node as not ready yet, or not ready any more; they are removed when it is ready.
const NOT_READY_TAINTS: [&str; 4] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.cloudprovider.kubernetes.io/uninitialized",
    "karpenter.sh/unregistered",
];
/// The prefix of further such taints.
const NOT_READY_PREFIX: &str = "readiness.k8s.io/";

impl Node {
    /// Whether members can run on the node now: it is Ready, schedulable, not being deleted and has no not-ready taint.
    pub fn is_ready(&self) -> bool {
        is_true(&self.status.conditions, "Ready")
            && !self.spec.unschedulable
            && self.metadata.deletion_timestamp.is_none()
            && !self.spec.taints.iter().any(Taint::is_not_ready)
    }
}

impl Taint {
    /// Whether the taint marks the node as not ready.
    pub fn is_not_ready(&self) -> bool {
        NOT_READY_TAINTS.contains(&&*self.key) || self.key.starts_with(NOT_READY_PREFIX)
    }
}
