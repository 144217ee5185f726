//! The roles of a gang.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::crd::gang::constraints::{Affinity, Toleration};
use crate::crd::values::amount::{Amount, Amounts};
use crate::crd::values::text::{Label, LabelValue, Text};

/// A set of identical members of the gang.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "!has(self.max) || self.max >= self.min", "message": "min is above max"},
]))]
pub struct Role {
    /// The name of the role, unique in the gang.
    pub name: Label,
    /// The smallest number of members with which the gang starts.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub min: i32,
    /// The largest number of members. Defaults to `min`; above it the gang is elastic.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max: Option<i32>,
    /// Resources that each member requests. A resource whose name ends in `/gpu` is GPUs: whole ones, or a fraction of
    /// one.
    #[serde(default, skip_serializing_if = "Amounts::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub resources: Amounts,
    /// Requirements for the GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuRequirements>,
    /// Labels that a node must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub node_selector: BTreeMap<String, LabelValue>,
    /// Affinity to nodes, as in a pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    /// Taints that members tolerate, as in a pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub tolerations: Vec<Toleration>,
    /// The process that each member runs where Muster itself starts processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
    /// The pod template of each member on Kubernetes: `metadata` and `spec`, as in a Job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<PodTemplate>,
}

/// Requirements for GPUs.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct GpuRequirements {
    /// Accepted GPU models; any model by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub models: Vec<Text>,
    /// The least memory of each GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Amount>,
}

/// The process of each member.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// The program and its arguments.
    #[schemars(length(min = 1, max = 1000), extend("x-kubernetes-list-type" = "atomic"))]
    pub command: Vec<String>,
    /// Environment variables of the process, in addition to those that Muster sets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 1000))]
    pub env: BTreeMap<String, String>,
    /// The working directory; that of the control plane by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<Text>,
}

/// A pod template, stored as written: Kubernetes defines what belongs in a pod, and that changes with every release.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PodTemplate(pub serde_json::Map<String, serde_json::Value>);

impl JsonSchema for PodTemplate {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "PodTemplate".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
    }
}
