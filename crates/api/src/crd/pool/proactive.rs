//! The capacity that a pool keeps ready ahead of demand.

use muster_core::proactive;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::values::duration::{Duration, DurationAboveZero};
use crate::crd::values::text::Text;

/// Nodes that are always kept ready for new gangs.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Warm {
    /// The number of free running nodes.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub nodes: i32,
    /// The number of nodes that were booted once and then stopped, to be started on demand.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub stopped: i32,
}

/// Free nodes in addition to those in use: one of these.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("minProperties" = 1, "maxProperties" = 1))]
pub struct Buffer {
    /// A fixed number of nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub nodes: Option<i32>,
    /// A percentage of the nodes in use, rounded up.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub percent: Option<f64>,
}

/// Nodes requested in addition to those that orders wait for.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Spare {
    /// A percentage of the nodes that orders wait for, rounded to the nearest number.
    #[schemars(range(min = 0, max = 100))]
    pub percent: f64,
}

/// A minimum size of the pool at certain hours.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Schedule {
    /// When the schedule begins, as a cron expression: minute, hour, day, month, weekday.
    #[schemars(extend("x-kubernetes-validations" = [
        {"rule": "self.matches('^ *[^ ]+( +[^ ]+){4} *$')", "message": "a cron expression has five fields: minute, hour, day, month, weekday"},
    ]))]
    pub cron: Text,
    /// The time zone of the cron expression, such as `Europe/Berlin`.
    #[serde(default = "utc")]
    pub timezone: Text,
    /// How long the schedule lasts each time.
    pub duration: DurationAboveZero,
    /// The smallest number of nodes of the pool in that time, used or free.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub nodes: i32,
}

/// Free nodes for forecast demand.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Forecast {
    /// The periods after which demand repeats, of two hours each or longer.
    #[serde(default = "default_seasons")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
    pub seasons: Vec<DurationAboveZero>,
    /// The share of gangs that should find all their nodes ready.
    #[serde(default = "default_service_level")]
    #[schemars(range(min = 0, max = 1))]
    pub service_level: f64,
    /// The cost of one gang waiting for one hour; used instead of `serviceLevel`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub cost_of_waiting: Option<f64>,
    /// The largest number of free nodes kept for the forecast.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_nodes: Option<i32>,
    /// The length of history needed before anything is forecast.
    #[serde(default = "default_min_history")]
    pub min_history: Duration,
    /// Report the forecast without keeping nodes for it.
    #[serde(default)]
    pub forecast_only: bool,
}

/// What happens to underused nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub enum Consolidate {
    /// Idle nodes are kept for ever.
    Never,
    /// Idle nodes are released after `idleAfter`.
    #[default]
    WhenEmpty,
    /// Idle nodes are released after `idleAfter`, and gangs that may be moved are moved off nodes that are hardly used.
    WhenUnderused,
}

/// The timeouts of the stages of a claim.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Timeouts {
    /// Time until the machine runs.
    #[serde(default = "default_launch")]
    pub launch: DurationAboveZero,
    /// Time until the node has joined the cluster.
    #[serde(default = "default_register")]
    pub register: DurationAboveZero,
    /// Time until every GPU has appeared.
    #[serde(default = "default_gpus")]
    pub gpus: DurationAboveZero,
}

fn utc() -> Text {
    "UTC".into()
}

fn default_seasons() -> Vec<DurationAboveZero> {
    proactive::ForecastSpec::default().seasons.into_iter().map(DurationAboveZero).collect()
}

fn default_service_level() -> f64 {
    f64::from(proactive::ForecastSpec::default().service_level) / 1e3
}

fn default_min_history() -> Duration {
    Duration(proactive::ForecastSpec::default().min_history)
}

fn default_launch() -> DurationAboveZero {
    DurationAboveZero(proactive::Timeouts::default().launch)
}

fn default_register() -> DurationAboveZero {
    DurationAboveZero(proactive::Timeouts::default().register)
}

fn default_gpus() -> DurationAboveZero {
    DurationAboveZero(proactive::Timeouts::default().gpus)
}
