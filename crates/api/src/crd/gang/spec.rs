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
    /// What was asked for.
    pub spec: GangSpec,
    /// What became of it. Written by Muster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<GangStatus>,
}

impl Resource for Gang {
    const KIND: &'static str = "Gang";
    const PLURAL: &'static str = "gangs";
    const SHORT: &'static str = "gg";
    const NAMESPACED: bool = true;
    // Whoever lists all of a namespace's work means its gangs too.
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

/// What a gang asks for.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "!has(self.priority) || !has(self.priorityClassName)", "message": "give priority or priorityClassName, not both"},
]))]
pub struct GangSpec {
    /// The queue it waits in.
    #[serde(default = "default_queue")]
    pub queue: Name,
    /// Who submitted it. Counts in a queue's `userLimit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<Text>,
    /// Higher goes first; 0 when nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// The priority by its name, instead of by number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<Name>,
    /// Its members, by what they do.
    #[schemars(
        length(min = 1, max = 1000),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub roles: Vec<Role>,
    /// How close together its members must or should be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<Closeness>,
    /// How nodes are bought for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provisioning: Option<Provisioning>,
    /// What it takes with every role at its `max`. Taken as one hour when nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_duration: Option<DurationAboveZero>,
    /// When it should be done, such as `2026-12-01T08:00:00Z`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Instant>,
    /// What an hour of delay costs its owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub cost_of_waiting: Option<f64>,
    /// What may be done to it while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disruption: Option<Disruption>,
    /// What more members bring it, and what a change of them costs. For gangs with `max` above `min`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scaling: Option<Scaling>,
    /// How often it is started again, whole, after a member has failed. Where Muster itself starts processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub retries: Option<i32>,
    /// How long one run may take. Where Muster itself starts processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_limit: Option<DurationAboveZero>,
    /// Tells members how many they are now, instead of starting them anew. Where Muster itself starts processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resize_signal: Option<Signal>,
}

/// How close together members must or should be: one of the two.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub struct Closeness {
    /// All members in one domain of this level, or not at all. A level by its name or label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required: Option<Text>,
    /// In one domain of this level if possible, else in the smallest that holds them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preferred: Option<Text>,
}

/// How nodes are bought for a gang.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Provisioning {
    /// Whether at all.
    #[serde(default)]
    pub mode: ProvisioningMode,
    /// How long an order may assemble before it is rolled back.
    #[serde(default = "default_timeout")]
    pub timeout: DurationAboveZero,
    /// Failed orders in a row before a pause of half an hour.
    #[serde(default = "default_attempts")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub attempts: i32,
    /// What becomes of an order that cannot be completed.
    #[serde(default)]
    pub on_failure: OnFailure,
}

/// Whether nodes may be bought.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub enum ProvisioningMode {
    /// When it lacks nodes; it also counts in the forecasts of pools.
    #[default]
    Proactive,
    /// When it lacks nodes.
    Reactive,
    /// It runs on what is there.
    Never,
}

/// What becomes of an order that cannot be completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub enum OnFailure {
    /// All of it is given up.
    #[default]
    RollBack,
}

/// What more members bring a gang, and what a change of them costs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Scaling {
    /// What twice the members bring of twice the speed.
    #[serde(default = "linear")]
    #[schemars(extend("minimum" = 0.5, "exclusiveMinimum" = true, "maximum" = 1))]
    pub efficiency: f64,
    /// How long it stands still when its members change.
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
    Duration(muster_core::work::Scaling::default().resize)
}
