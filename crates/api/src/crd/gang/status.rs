//! What became of a gang: its verdict, in the words of Kubernetes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::condition::Condition;
use crate::crd::gang::placement::Placement;
use crate::crd::values::stamp::Stamp;

/// What became of a gang.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GangStatus {
    /// The generation of the spec that this is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Where it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<GangPhase>,
    /// Why, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub reason: Option<String>,
    /// Why, in sentences, and what would help.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32768))]
    pub message: Option<String>,
    /// Members that run, and members it was promised; while it waits, those it needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<Members>,
    /// The same for lists: `7/8`. Nodes while its order assembles, members otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub progress: Option<String>,
    /// Nodes its members are on, or are promised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<i32>,
    /// Its place among those who wait, 1 for the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<i32>,
    /// The order that assembles for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub order: Option<String>,
    /// When it is expected to start, as long as beliefs hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_start: Option<Stamp>,
    /// Since when it waits, or last did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_since: Option<Stamp>,
    /// When every member had a seat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admitted_at: Option<Stamp>,
    /// When every member ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running_since: Option<Stamp>,
    /// When it was over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Stamp>,
    /// Orders that failed since the last one that did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_orders: Option<i32>,
    /// When the last of them failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failed_order: Option<Stamp>,
    /// Times it had to start over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restarts: Option<i32>,
    /// Which pods go to which node. Written before the first of them is bound, so that a restart binds the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20_000), extend("x-kubernetes-list-type" = "atomic"))]
    pub placement: Vec<Placement>,
    /// The groups that start together as this gang, where there are several, as `namespace/name`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 1000),
        inner(length(max = 507)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub groups: Vec<String>,
    /// Its state, aspect by aspect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
}

/// Where a gang stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum GangPhase {
    /// In its queue, holding nothing.
    Waiting,
    /// In its queue, its order assembling.
    Provisioning,
    /// Every member has a seat and is being started.
    Admitted,
    /// Every member runs.
    Running,
    /// Being stopped, all members together.
    Stopping,
    /// It can never run as it is.
    Infeasible,
    /// Done.
    Succeeded,
    /// Over without being done.
    Failed,
}

/// How many of how many.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Members {
    /// So many.
    pub ready: i32,
    /// Of so many.
    pub total: i32,
}

impl std::fmt::Display for Members {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.ready, self.total)
    }
}
