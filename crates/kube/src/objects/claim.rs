//! Karpenter's NodeClaims.

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use super::{Condition, is_true, served};

/// A request for one machine. Its spec never changes, and who wrote it knows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NodeClaim {
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub status: NodeClaimStatus,
}

served!(NodeClaim, ClusterResourceScope, "karpenter.sh", "v1", "nodeclaims");

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeClaimStatus {
    pub node_name: Option<String>,
    pub conditions: Vec<Condition>,
}

impl NodeClaim {
    /// Whether the provider has started a machine.
    pub fn is_launched(&self) -> bool {
        is_true(&self.status.conditions, "Launched")
    }
    /// Whether its machine has joined the cluster.
    pub fn is_registered(&self) -> bool {
        is_true(&self.status.conditions, "Registered")
    }
    /// Whether it is on its way out.
    pub fn is_leaving(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }
}
