//! What became of an order.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What became of an order.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrderStatus {
    /// Where it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<OrderPhase>,
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
