//! Karpenter's NodeClaims: the fields that provisioning reads.

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::{Deserialize, Serialize};

use crate::objects::resource::served;

/// A request for one machine. Its spec is immutable, and the Order has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NodeClaim {
    #[serde(deserialize_with = "super::metadata::kept")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub status: NodeClaimStatus,
}

served!(NodeClaim, ClusterResourceScope, "karpenter.sh", "v1", "nodeclaims");

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeClaimStatus {
    pub node_name: Option<String>,
    pub conditions: Vec<ClaimCondition>,
}

/// A condition of a NodeClaim, with its transition time and without its reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimCondition {
    #[serde(rename = "type")]
    pub kind: String,
    pub status: String,
    pub last_transition_time: Option<Time>,
}

impl NodeClaim {
    fn true_condition(&self, kind: &str) -> Option<&ClaimCondition> {
        self.status.conditions.iter().find(|one| one.kind == kind && one.status == "True")
    }
    /// Whether the provider has started a machine.
    pub fn is_launched(&self) -> bool {
        self.true_condition("Launched").is_some()
    }
    /// When the provider has started a machine, if the condition has a time.
    pub fn launched_at(&self) -> Option<&Time> {
        self.true_condition("Launched")?.last_transition_time.as_ref()
    }
    /// Whether its machine has joined the cluster.
    pub fn is_registered(&self) -> bool {
        self.true_condition("Registered").is_some()
    }
    /// Whether the claim is being deleted.
    pub fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }
}
