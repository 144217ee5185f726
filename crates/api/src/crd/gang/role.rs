//! The roles of a gang.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::crd::gang::constraints::{Affinity, Toleration};
use crate::crd::values::amount::{Amount, Amounts};
use crate::crd::values::text::{Label, LabelValue, Text};

/// Members that differ in nothing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "!has(self.max) || self.max >= self.min", "message": "min is above max"},
]))]
pub struct Role {
    /// Its name, unique in the gang.
    pub name: Label,
    /// The gang does not start with fewer.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub min: i32,
    /// The gang never has more. As `min` when nothing is said; above it the gang is elastic.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max: Option<i32>,
    /// What each member asks for. A name that ends in `/gpu` is GPUs: whole ones, or a part of one.
    #[serde(default, skip_serializing_if = "Amounts::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub resources: Amounts,
    /// What its GPUs must be like.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuWish>,
    /// Labels a node must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub node_selector: BTreeMap<String, LabelValue>,
    /// What is asked of nodes, as in a pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    /// Taints that do not keep members off a node, as in a pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub tolerations: Vec<Toleration>,
    /// What each member runs where Muster itself starts processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
    /// The pod each member runs in on Kubernetes: `metadata` and `spec`, as in a Job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<PodTemplate>,
}

/// What GPUs must be like.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct GpuWish {
    /// One of these models; any when nothing is said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub models: Vec<Text>,
    /// With so much memory each, or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Amount>,
}

/// A process for each member.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// The program and its arguments.
    #[schemars(length(min = 1, max = 1000), extend("x-kubernetes-list-type" = "atomic"))]
    pub command: Vec<String>,
    /// Environment variables it gets besides Muster's own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 1000))]
    pub env: BTreeMap<String, String>,
    /// Where it runs; where the control plane does when nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<Text>,
}

/// A pod template, kept as it is: what belongs in a pod is for Kubernetes to say, and changes with every release.
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
