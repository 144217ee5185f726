//! `kind: Topology`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::condition::Condition;
use crate::crd::definition::{Column, Resource};
use crate::crd::values::text::{Key, Label};

/// The levels of the cluster's topology, widest first. There is at most one Topology.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Topology {
    /// The levels.
    pub spec: TopologySpec,
    /// Whether the topology is the one in use. Written by Muster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<TopologyStatus>,
}

impl Resource for Topology {
    const KIND: &'static str = "Topology";
    const PLURAL: &'static str = "topologies";
    const SHORT: &'static str = "mtopo";
    // A column of a list field would show the first item only.
    const COLUMNS: &'static [Column] = &[Column::AGE];
}

/// The levels of a topology.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TopologySpec {
    /// The levels, widest first. The level below the last is the node.
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

/// One level of a topology.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "self.name != 'node' && self.label != 'kubernetes.io/hostname'", "message": "`node` is the last level of every tree, by the label kubernetes.io/hostname"},
]))]
pub struct Level {
    /// The name of the level in gangs.
    pub name: Label,
    /// The node label whose value is the node's domain at this level.
    pub label: Key,
}

/// Whether a topology is the one in use.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopologyStatus {
    /// The generation of the spec that this status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The conditions of the topology.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
}
