//! `kind: Gang`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::definition::{Column, Resource};
use crate::crd::gang::disruption::{Disruption, Signal};
use crate::crd::gang::role::Role;
use crate::crd::gang::status::GangStatus;
use crate::crd::values::duration::{Duration, DurationAboveZero};
use crate::crd::values::text::{Instant, Name, Text};
use crate::manifest::gang::gang_spec::DEFAULT_QUEUE;

/// A set of members that start together, or not at all.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Gang {
    /// What the gang requests.
    pub spec: GangSpec,
    /// The state of the gang. Written by Muster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<GangStatus>,
}

impl Resource for Gang {
    const KIND: &'static str = "Gang";
    const PLURAL: &'static str = "gangs";
    const SHORT: &'static str = "gg";
    const NAMESPACED: bool = true;
    // `kubectl get all` lists gangs too.
    const CATEGORIES: &'static [&'static str] = &["muster", "all"];
    const COLUMNS: &'static [Column] = &[
        Column::text("Queue", ".spec.queue"),
        Column::text("Phase", ".status.phase"),
        Column::text("Ready", ".status.progress"),
        Column::number("Nodes", ".status.nodes"),
        Column::text("Why", ".status.reason"),
        Column::text("Starts", ".status.expectedStart").when_wide(),
        Column::text("Message", ".status.message").when_wide(),
        Column::AGE,
    ];
}

/// What a gang requests.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "!has(self.priority) || !has(self.priorityClassName)", "message": "give priority or priorityClassName, not both"},
]))]
pub struct GangSpec {
    /// The queue that the gang waits in.
    #[serde(default = "default_queue")]
    pub queue: Name,
    /// The user who submitted the gang. Counts towards the queue's `userLimit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<Text>,
    /// Gangs of higher priority are started first; 0 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// The priority class, instead of a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<Name>,
    /// The members of the gang, grouped by what they run.
    #[schemars(
        length(min = 1, max = 1000),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub roles: Vec<Role>,
    /// How close together the members must or should be placed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<Closeness>,
    /// How nodes are provisioned for the gang.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioning: Option<Provisioning>,
    /// How long a run takes with every role at its `max`. Assumed to be one hour by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_duration: Option<DurationAboveZero>,
    /// When the gang should be finished, such as `2026-12-01T08:00:00Z`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Instant>,
    /// The cost of one hour of delay to the gang's owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub cost_of_waiting: Option<f64>,
    /// How the gang may be disrupted while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disruption: Option<Disruption>,
    /// How the gang's speed depends on the number of its members, and what a resize costs. For gangs with `max` above
    /// `min`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scaling: Option<Scaling>,
    /// How often the whole gang is restarted after a member has failed. Applies where Muster itself starts processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub retries: Option<i32>,
    /// The longest time that one run may take. Applies where Muster itself starts processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_limit: Option<DurationAboveZero>,
    /// The signal by which members are told their new number, instead of a restart. Applies where Muster itself starts
    /// processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resize_signal: Option<Signal>,
}

/// How close together members must or should be placed: one of the two.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub struct Closeness {
    /// All members must be in one domain of this level. The level is given by its name or its label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required: Option<Text>,
    /// All members should be in one domain of this level, or else in the smallest domain that holds them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preferred: Option<Text>,
}

/// How nodes are provisioned for a gang.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Provisioning {
    /// Whether nodes are bought for the gang.
    #[serde(default)]
    pub mode: ProvisioningMode,
    /// How long an order may take to assemble before it is rolled back.
    #[serde(default = "default_timeout")]
    pub timeout: DurationAboveZero,
    /// The number of consecutive failed orders before a pause of half an hour.
    #[serde(default = "default_attempts")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub attempts: i32,
    /// What happens to an order that cannot be completed.
    #[serde(default)]
    pub on_failure: OnFailure,
}

/// Whether nodes are bought for a gang.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub enum ProvisioningMode {
    /// Nodes are bought when the gang lacks them, and the gang counts in the forecasts of pools.
    #[default]
    Proactive,
    /// Nodes are bought when the gang lacks them.
    Reactive,
    /// The gang runs only on nodes that exist.
    Never,
}

/// What happens to an order that cannot be completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub enum OnFailure {
    /// The whole order is rolled back.
    #[default]
    RollBack,
}

/// How a gang's speed depends on the number of its members, and what a resize costs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Scaling {
    /// The fraction of twice the speed that twice the members reach.
    #[serde(default = "linear")]
    #[schemars(extend("minimum" = 0.5, "exclusiveMinimum" = true, "maximum" = 1))]
    pub efficiency: f64,
    /// How long the gang pauses when its number of members changes.
    #[serde(default = "default_resize_cost")]
    pub resize_cost: Duration,
}

fn default_queue() -> Name {
    DEFAULT_QUEUE.into()
}

fn default_timeout() -> DurationAboveZero {
    DurationAboveZero(muster_core::gang::Provisioning::default().timeout)
}

fn default_attempts() -> i32 {
    muster_core::gang::Provisioning::default().attempts.cast_signed()
}

fn linear() -> f64 {
    1.0
}

fn default_resize_cost() -> Duration {
    Duration(muster_core::progress::Scaling::default().resize)
}
