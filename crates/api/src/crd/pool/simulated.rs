//! The behaviour of a simulated cloud.

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
    /// When machines are out of stock; never by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stock_out: Option<StockOut>,
    /// How often nodes in use fail; never by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_service: Option<InService>,
    /// Faults that are certain to occur.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "atomic"))]
    pub script: Vec<ScriptedFault>,
}

/// The medians of the stages of a boot, and their spread.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Boot {
    /// Time from the request until the machine runs.
    #[serde(default = "default_launch")]
    pub launch: Duration,
    /// Time from then until the node has joined the cluster.
    #[serde(default = "default_register")]
    pub register: Duration,
    /// Time from then until every GPU has appeared.
    #[serde(default = "default_gpus")]
    pub gpus: Duration,
    /// The standard deviation of the logarithm; 0 makes the times exact.
    #[serde(default = "default_sigma")]
    #[schemars(range(min = 0, max = 3))]
    pub sigma: f64,
}

/// Probabilities of failures, per request.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Failures {
    /// The machine never joins the cluster.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub boot_failed: f64,
    /// The node joins, but not all of its GPUs appear.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub gpus_missing: f64,
    /// The provider throttles the request, and there is no machine.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub throttled: f64,
}

/// How long machines are in stock, and out of stock.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StockOut {
    /// The mean time that machines are in stock.
    #[serde(default = "default_mean_up")]
    pub mean_up: DurationAboveZero,
    /// The mean time that machines are out of stock.
    #[serde(default = "default_mean_down")]
    pub mean_down: DurationAboveZero,
}

/// Failures of nodes in use.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InService {
    /// The mean lifetime of a node in use.
    #[serde(default = "default_mean_time_to_failure")]
    pub mean_time_to_failure: DurationAboveZero,
}

/// The n-th claim ever created in a zone fails.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ScriptedFault {
    /// The zone, which must be that of an offering.
    pub zone: Text,
    /// The number of the claim in that zone, from 1.
    #[schemars(range(min = 1))]
    pub claim: u32,
    /// How the claim fails.
    pub fails: Fault,
}

/// How a claim fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum Fault {
    /// The machine is out of stock.
    StockOut,
    /// The machine never joins the cluster.
    BootFailed,
    /// The node joins, but not all of its GPUs appear.
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
