//! `kind: Topology`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::condition::Condition;
use crate::crd::definition::{Column, Resource};
use crate::crd::values::text::{Key, Label};

/// The levels of a cluster's tree, widest first. There is one at most.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Topology {
    /// The levels.
    pub spec: TopologySpec,
    /// Whether it is the one in use. Written by Muster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<TopologyStatus>,
}

impl Resource for Topology {
    const KIND: &'static str = "Topology";
    const PLURAL: &'static str = "topologies";
    const SHORT: &'static str = "mtopo";
    // Of a list, a column would show the first item only.
    const COLUMNS: &'static [Column] = &[Column::AGE];
}

/// The levels of a tree.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TopologySpec {
    /// The levels, widest first. Below the last are the nodes themselves.
    #[schemars(
        length(min = 1, max = 16),
        extend(
            "x-kubernetes-list-type" = "map",
            "x-kubernetes-list-map-keys" = ["name"],
            "x-kubernetes-validations" = [
                {"rule": "self.all(level, self.exists_one(other, other.label == level.label))", "message": "every level has its own label"},
            ]
        )
    )]
    pub levels: Vec<Level>,
}

/// One level of a tree.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "self.name != 'node' && self.label != 'kubernetes.io/hostname'", "message": "`node` is the last level of every tree, by the label kubernetes.io/hostname"},
]))]
pub struct Level {
    /// What gangs call it.
    pub name: Label,
    /// The label of nodes that says which domain of this level they are in.
    pub label: Key,
}

/// Whether a topology is the one in use.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopologyStatus {
    /// The generation of the spec that this is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Its state, aspect by aspect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
}
