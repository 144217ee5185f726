//! What a pool keeps ready ahead of need.

use muster_core::ahead;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::values::duration::{Duration, DurationAboveZero};
use crate::crd::values::text::Text;

/// Nodes that are there for whoever comes.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Warm {
    /// Free nodes that run, always.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub nodes: i32,
    /// Nodes that were booted once and are stopped, to be woken.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub stopped: i32,
}

/// Free nodes beside those in use: one of these.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub struct Buffer {
    /// So many.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub nodes: Option<i32>,
    /// So many for a hundred in use, rounded up.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub percent: Option<f64>,
}

/// Nodes asked for beside those that orders wait for.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Spare {
    /// So many for every hundred, rounded to the nearest.
    #[schemars(range(min = 0, max = 100))]
    pub percent: f64,
}

/// A size at certain hours.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Schedule {
    /// When it begins: minute, hour, day, month, weekday.
    #[schemars(extend("x-kubernetes-validations" = [
        {"rule": "self.matches('^ *[^ ]+( +[^ ]+){4} *$')", "message": "a cron expression has five fields: minute, hour, day, month, weekday"},
    ]))]
    pub cron: Text,
    /// By whose clocks, such as `Europe/Berlin`.
    #[serde(default = "utc")]
    pub timezone: Text,
    /// How long it lasts.
    pub duration: DurationAboveZero,
    /// Nodes the pool has then at least, used or free.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub nodes: i32,
}

/// Free nodes for demand that is expected.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Forecast {
    /// After how long demand repeats itself; two hours each, or longer.
    #[serde(default = "default_seasons")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
    pub seasons: Vec<DurationAboveZero>,
    /// The share of gangs that are to find all their nodes ready.
    #[serde(default = "default_service_level")]
    #[schemars(range(min = 0, max = 1))]
    pub service_level: f64,
    /// What it costs when one gang waits for an hour; decides instead of `serviceLevel`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub cost_of_waiting: Option<f64>,
    /// Never more free nodes than these.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_nodes: Option<i32>,
    /// Nothing is expected before so much was seen.
    #[serde(default = "default_min_history")]
    pub min_history: Duration,
    /// Only tell what would be kept; keep nothing.
    #[serde(default)]
    pub forecast_only: bool,
}

/// What is done about nodes that are used too little.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub enum Consolidate {
    /// Idle nodes are kept for ever.
    Never,
    /// Idle nodes are given back after `idleAfter`.
    #[default]
    WhenEmpty,
    /// Gangs that may be moved are also moved off nodes that hardly anybody uses.
    WhenUnderused,
}

/// How long each stage of a claim may take.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Timeouts {
    /// Until its machine runs.
    #[serde(default = "default_launch")]
    pub launch: DurationAboveZero,
    /// Until its node has joined.
    #[serde(default = "default_register")]
    pub register: DurationAboveZero,
    /// Until every GPU has appeared.
    #[serde(default = "default_gpus")]
    pub gpus: DurationAboveZero,
}

fn utc() -> Text {
    "UTC".into()
}

fn default_seasons() -> Vec<DurationAboveZero> {
    ahead::ForecastSpec::default().seasons.into_iter().map(DurationAboveZero).collect()
}

fn default_service_level() -> f64 {
    f64::from(ahead::ForecastSpec::default().service_level) / 1e3
}

fn default_min_history() -> Duration {
    Duration(ahead::ForecastSpec::default().min_history)
}

fn default_launch() -> DurationAboveZero {
    DurationAboveZero(ahead::Patience::default().launch)
}

fn default_register() -> DurationAboveZero {
    DurationAboveZero(ahead::Patience::default().register)
}

fn default_gpus() -> DurationAboveZero {
    DurationAboveZero(ahead::Patience::default().gpus)
}
