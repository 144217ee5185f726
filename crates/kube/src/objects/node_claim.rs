//! Karpenter's NodeClaims.

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::{Deserialize, Serialize};

use crate::objects::resource::served;

/// A request for one machine. Its spec never changes, and who wrote it knows it.
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
    pub conditions: Vec<Step>,
}

/// How far a claim is: a condition, and since when it is so. Why is Karpenter's to say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Step {
    #[serde(rename = "type")]
    pub kind: String,
    pub status: String,
    pub last_transition_time: Option<Time>,
}

impl NodeClaim {
    fn step(&self, kind: &str) -> Option<&Step> {
        self.status.conditions.iter().find(|step| step.kind == kind && step.status == "True")
    }
    /// Whether the provider has started a machine.
    pub fn is_launched(&self) -> bool {
        self.step("Launched").is_some()
    }
    /// When the provider has started a machine, if it says so.
    pub fn launched_at(&self) -> Option<&Time> {
        self.step("Launched")?.last_transition_time.as_ref()
    }
    /// Whether its machine has joined the cluster.
    pub fn is_registered(&self) -> bool {
        self.step("Registered").is_some()
    }
    /// Whether it is on its way out.
    pub fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }
}
