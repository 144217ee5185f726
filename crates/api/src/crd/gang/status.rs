//! The status of a Gang: its verdict in Kubernetes' terms.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::condition::Condition;
use crate::crd::gang::placement::Placement;
use crate::crd::values::stamp::Stamp;

/// The state of a gang.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GangStatus {
    /// The generation of the spec that this status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The phase of the gang.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<GangPhase>,
    /// The reason for the phase, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub reason: Option<String>,
    /// The reason for the phase, in sentences, and what would help.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32768))]
    pub message: Option<String>,
    /// Members that run, of all that were admitted; while the gang waits, of all that it needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<Members>,
    /// The same for lists: `7/8`. Counts nodes while an order assembles, members otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub progress: Option<String>,
    /// The number of nodes that the members run on or are placed on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<i32>,
    /// The position of the gang among all waiting gangs, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<i32>,
    /// The order that is assembling for the gang.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub order: Option<String>,
    /// When the gang is expected to start, if nothing changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_start: Option<Stamp>,
    /// Since when the gang has been waiting, or when its last wait began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_since: Option<Stamp>,
    /// When every member had a seat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admitted_at: Option<Stamp>,
    /// When every member was running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running_since: Option<Stamp>,
    /// When the gang ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Stamp>,
    /// The number of failed orders since the last one that succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_orders: Option<i32>,
    /// When the last of these orders failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failed_order: Option<Stamp>,
    /// How often the gang had to restart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restarts: Option<i32>,
    /// The assignment of pods to nodes. Written before the first pod is bound, so that the same pods are bound after a
    /// restart of Muster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20_000), extend("x-kubernetes-list-type" = "atomic"))]
    pub placement: Vec<Placement>,
    /// The groups that are scheduled together as this gang, where there are several, as `namespace/name`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 1000),
        inner(length(max = 507)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub groups: Vec<String>,
    /// The conditions of the gang.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
}

/// The phase of a gang.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum GangPhase {
    /// The gang waits in its queue and holds nothing.
    Waiting,
    /// The gang waits in its queue while its order assembles.
    Provisioning,
    /// Every member has a seat and is being started.
    Admitted,
    /// Every member runs.
    Running,
    /// All members are being stopped, together.
    Stopping,
    /// The gang can never run as it is.
    Infeasible,
    /// The gang finished successfully.
    Succeeded,
    /// The gang ended without success.
    Failed,
}

/// A number of members, of a total.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Members {
    /// Members that are running.
    pub ready: i32,
    /// All members.
    pub total: i32,
}

impl std::fmt::Display for Members {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.ready, self.total)
    }
}
