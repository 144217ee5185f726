//! The behaviour of a simulated cloud: boot times and failures.
//!
//! These are parameters only; the simulator draws the random numbers.

use std::sync::Arc;

use muster_core::time::Span;
use serde::{Deserialize, Serialize};

use crate::read::finding::Mark;
use crate::yaml::fields::Fields;
use crate::yaml::value::Value;

/// How a simulated cloud behaves.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SimulatedCloud {
    /// How long each stage of a boot takes.
    pub boot: BootTimes,
    /// How often a boot fails.
    pub failures: FailureOdds,
    /// When zones are out of stock; never when absent.
    pub stock_out: Option<StockOut>,
    /// How often nodes in use fail; never when absent.
    pub in_service: Option<InService>,
    /// Faults that are certain to occur, for examples and tests.
    pub script: Vec<ScriptedFault>,
}

/// Log-normal boot stages: their medians, and one spread for all. The medians are scaled to sum to an offering's
/// `boot_time`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BootTimes {
    /// Time from the request until the machine runs.
    pub launch: Span,
    /// Time from then until the node has joined the cluster.
    pub register: Span,
    /// Time from then until every GPU has appeared.
    pub gpus: Span,
    /// The standard deviation of the logarithm.
    pub sigma: f64,
}

impl Default for BootTimes {
    fn default() -> Self {
        Self {
            launch: Span::secs(150),
            register: Span::secs(45),
            gpus: Span::secs(60),
            sigma: 0.35,
        }
    }
}

impl BootTimes {
    /// Approximately the median of the whole boot: the expected boot time of an offering without a `bootTime`.
    pub fn sum(&self) -> Span {
        self.launch + self.register + self.gpus
    }
}

/// Probabilities of failures, per request.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FailureOdds {
    /// The machine never joins the cluster.
    pub boot_failed: f64,
    /// The node joins, but not all of its GPUs appear.
    pub gpus_missing: f64,
    /// The provider throttles the request, and there is no machine.
    pub throttled: f64,
}

/// A zone alternates between being in stock and out of stock, for exponentially distributed times.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StockOut {
    /// The mean time that machines are in stock.
    pub mean_up: Span,
    /// The mean time that machines are out of stock.
    pub mean_down: Span,
}

impl Default for StockOut {
    fn default() -> Self {
        Self { mean_up: Span::hours(10), mean_down: Span::hours(2) }
    }
}

/// Failures of nodes in use.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InService {
    /// The mean lifetime of one node.
    pub mean_time_to_failure: Span,
}

impl Default for InService {
    fn default() -> Self {
        Self { mean_time_to_failure: Span::hours(6_300) }
    }
}

/// The n-th claim ever launched in a zone fails in a given way.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScriptedFault {
    /// The zone.
    pub zone: Arc<str>,
    /// The number of the claim in that zone, from 1.
    pub claim: u32,
    /// How the claim fails.
    pub fails: Fault,
}

/// How a claim fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Fault {
    /// The machine is out of stock.
    StockOut,
    /// The machine never joins the cluster.
    BootFailed,
    /// The node joins, but not all of its GPUs appear.
    GpusMissing,
}

/// Reads `provider.simulated`; absent fields keep their defaults. Also returns where each scripted fault is written, to
/// be checked against the pool's offerings.
pub(crate) fn read(value: &Value<'_>) -> (SimulatedCloud, Vec<Mark>) {
    let mut cloud = SimulatedCloud::default();
    let Some(fields) = value.optional_fields() else { return (cloud, Vec::new()) };
    if let Some(boot) = fields.get("boot").and_then(|value| value.fields()) {
        set(&mut cloud.boot.launch, boot.span("launch"));
        set(&mut cloud.boot.register, boot.span("register"));
        set(&mut cloud.boot.gpus, boot.span("gpus"));
        // Above 3, one boot in six takes twenty times the median or more, which no cloud does.
        set(&mut cloud.boot.sigma, boot.get("sigma").and_then(|value| value.number(0.0..=3.0)));
        boot.done();
    }
    if let Some(odds) = fields.get("failures").and_then(|value| value.fields()) {
        set(&mut cloud.failures.boot_failed, probability(&odds, "bootFailed"));
        set(&mut cloud.failures.gpus_missing, probability(&odds, "gpusMissing"));
        set(&mut cloud.failures.throttled, probability(&odds, "throttled"));
        odds.done();
    }
    if let Some(stock) = fields.get("stockOut").and_then(|value| value.fields()) {
        let out = cloud.stock_out.get_or_insert_default();
        set(&mut out.mean_up, stock.span_above_zero("meanUp"));
        set(&mut out.mean_down, stock.span_above_zero("meanDown"));
        stock.done();
    }
    if let Some(service) = fields.get("inService").and_then(|value| value.fields()) {
        let mean = service.span_above_zero("meanTimeToFailure");
        set(&mut cloud.in_service.get_or_insert_default().mean_time_to_failure, mean);
        service.done();
    }
    let script = fields.list("script");
    fields.done();
    let marked = |value: &Value<'_>| Some((fault(value)?, value.mark()));
    let (script, marks) = script.iter().filter_map(marked).unzip();
    cloud.script = script;
    (cloud, marks)
}

fn fault(value: &Value<'_>) -> Option<ScriptedFault> {
    let fields = value.fields()?;
    let zone = fields.need("zone").and_then(|value| value.text());
    let claim = fields.need("claim").and_then(|value| value.count(1..=u32::MAX));
    let faults = [
        ("StockOut", Fault::StockOut),
        ("BootFailed", Fault::BootFailed),
        ("GpusMissing", Fault::GpusMissing),
    ];
    let fails = fields.need("fails").and_then(|value| value.one_of(&faults));
    fields.done();
    Some(ScriptedFault { zone: zone?.into(), claim: claim?, fails: fails? })
}

fn probability(fields: &Fields<'_>, name: &'static str) -> Option<f64> {
    fields.get(name)?.number(0.0..=1.0)
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}
