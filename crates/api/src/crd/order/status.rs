//! The status of an Order.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The state of an order.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrderStatus {
    /// The phase of the order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<OrderPhase>,
    /// The number of nodes that are ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<i32>,
    /// The number of nodes that were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<i32>,
    /// The same for lists: `7/8`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub progress: Option<String>,
    /// The number of gangs that are still being preempted for the order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaving: Option<i32>,
}

/// The phase of an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum OrderPhase {
    /// The nodes of the order are being provisioned.
    Assembling,
    /// Every node is ready, and the gang starts.
    Complete,
    /// The whole order was rolled back.
    RolledBack,
}
