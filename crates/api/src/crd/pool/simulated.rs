//! The cloud a simulated pool plays.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::values::duration::{Duration, DurationAboveZero};
use crate::crd::values::text::Text;
use crate::manifest::pool::simulated;
use crate::manifest::pool::simulated::BootTimes;

/// How a simulated cloud behaves.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Simulated {
    /// How long each stage of a boot takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot: Option<Boot>,
    /// How often a boot fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failures: Option<Failures>,
    /// When machines cannot be had; always can they when nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stock_out: Option<StockOut>,
    /// How often nodes fail while they are used; never when nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_service: Option<InService>,
    /// Faults that come for certain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "atomic"))]
    pub script: Vec<ScriptedFault>,
}

/// Medians of the stages of a boot, and their spread.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Boot {
    /// From asking until the machine runs.
    #[serde(default = "default_launch")]
    pub launch: Duration,
    /// From running until it has joined the cluster.
    #[serde(default = "default_register")]
    pub register: Duration,
    /// From joining until every GPU has appeared.
    #[serde(default = "default_gpus")]
    pub gpus: Duration,
    /// Spread of the logarithm; 0 is exact.
    #[serde(default = "default_sigma")]
    #[schemars(range(min = 0, max = 3))]
    pub sigma: f64,
}

/// Probabilities, per request.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Failures {
    /// The machine never joins.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub boot_failed: f64,
    /// It joins, and not all of its GPUs appear.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub gpus_missing: f64,
    /// The provider says "not now, ask again", and there is no machine.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub throttled: f64,
}

/// How long machines can be had, and cannot.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StockOut {
    /// How long machines can be had, on average.
    #[serde(default = "default_mean_up")]
    pub mean_up: DurationAboveZero,
    /// How long they cannot, on average.
    #[serde(default = "default_mean_down")]
    pub mean_down: DurationAboveZero,
}

/// Failures of nodes in use.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InService {
    /// How long one node lasts, on average.
    #[serde(default = "default_mean_time_to_failure")]
    pub mean_time_to_failure: DurationAboveZero,
}

/// The n-th claim ever made in a zone fails.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ScriptedFault {
    /// The zone, which must be one of an offering.
    pub zone: Text,
    /// Which claim of that zone, from 1.
    #[schemars(range(min = 1))]
    pub claim: u32,
    /// How it fails.
    pub fails: Fault,
}

/// How a claim fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum Fault {
    /// There is no machine to be had.
    StockOut,
    /// The machine never joins.
    BootFailed,
    /// It joins, and not all of its GPUs appear.
    GpusMissing,
}

fn default_launch() -> Duration {
    Duration(BootTimes::default().launch)
}

fn default_register() -> Duration {
    Duration(BootTimes::default().register)
}

fn default_gpus() -> Duration {
    Duration(BootTimes::default().gpus)
}

fn default_sigma() -> f64 {
    BootTimes::default().sigma
}

fn default_mean_up() -> DurationAboveZero {
    DurationAboveZero(simulated::StockOut::default().mean_up)
}

fn default_mean_down() -> DurationAboveZero {
    DurationAboveZero(simulated::StockOut::default().mean_down)
}

fn default_mean_time_to_failure() -> DurationAboveZero {
    DurationAboveZero(simulated::InService::default().mean_time_to_failure)
}
