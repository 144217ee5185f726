//! What became of an order.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Condition, Stamp};

/// What became of an order.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrderStatus {
    /// The generation of the spec that this is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Where it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<OrderPhase>,
    /// Why it was rolled back, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub reason: Option<String>,
    /// Why, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32768))]
    pub message: Option<String>,
    /// Nodes that are ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<i32>,
    /// Nodes that were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<i32>,
    /// The same for lists: `7/8`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub progress: Option<String>,
    /// Gangs that still make way for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaving: Option<i32>,
    /// When it was complete or rolled back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Stamp>,
    /// Its state, aspect by aspect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
}

/// Where an order stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum OrderPhase {
    /// Its nodes are coming.
    Assembling,
    /// Every node is ready, and its gang starts.
    Complete,
    /// It was given up, all of it.
    RolledBack,
}
