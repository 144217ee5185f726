//! Pods.

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use muster_api::pod::PodSpec;
use serde::{Deserialize, Serialize};

use super::{Condition, served};

/// A pod, as far as scheduling goes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pod {
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
}

impl Pod {
    /// Where it was put.
    pub fn node(&self) -> Option<&str> {
        self.spec.node_name.as_deref().filter(|name| !name.is_empty())
    }
    /// Whether it has run to its end and takes nothing any more.
    pub fn is_over(&self) -> bool {
        matches!(&*self.status.phase, "Succeeded" | "Failed")
    }
    pub fn has_succeeded(&self) -> bool {
        self.status.phase == "Succeeded"
    }
    /// Whether somebody has asked for its end.
    pub fn is_leaving(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }
    /// Whether somebody holds it back from being scheduled.
    pub fn is_gated(&self) -> bool {
        !self.spec.scheduling_gates.is_empty()
    }
}
