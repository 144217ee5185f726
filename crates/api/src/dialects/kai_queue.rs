//! Queues of KAI: a quota of GPUs, cores and memory, and a share of the rest.

use muster_core::resource::{CPU, MEMORY};

use crate::dialects::volcano_queue::QueueTerms;
use crate::foreign::json::{Findings, Json};
use crate::pod::totals::Totals;

const PARENT: &str = "parentQueue";
const RESOURCES: &str = "resources";
/// KAI's GPU quotas do not name a vendor.
const GPUS: &str = "nvidia.com/gpu";
/// KAI counts memory in megabytes.
const MEGA: f64 = 1e6;

/// Whether a queue has KAI's fields.
pub(crate) fn has_kai_fields(spec: &Json<'_>) -> bool {
    spec.get(RESOURCES).is_some() || spec.get(PARENT).is_some()
}

/// A quota can be reclaimed at any time, so it is what the queue deserves; `-1` means no limit, and nothing guaranteed.
pub(crate) fn queue(spec: &Json<'_>) -> QueueTerms {
    let resources = spec.get(RESOURCES);
    let of = |field: &str| resources.as_ref().and_then(|at| totals(at, field));
    let gpu = resources.as_ref().and_then(|at| at.get("gpu"));
    let weight = gpu.and_then(|gpu| number(&gpu, "overQuotaWeight"));
    QueueTerms {
        parent: spec.text(PARENT).map(Into::into),
        weight: weight.map(|weight| (weight.ceil() as u32).max(1)),
        deserved: of("quota"),
        limit: of("limit"),
        ..QueueTerms::default()
    }
}

/// One field of every resource, where it is a limit.
fn totals(resources: &Json<'_>, field: &str) -> Option<Totals> {
    let figure = |name: &str, unit: f64| {
        let figure = number(&resources.get(name)?, field)?;
        Some((figure * unit).round() as u64)
    };
    let gpus = figure("gpu", 1e3).map(|milli| (GPUS.into(), milli));
    let amounts = [(CPU, figure("cpu", 1.0)), (MEMORY, figure("memory", MEGA))];
    let amounts = amounts.into_iter().filter_map(|(name, amount)| Some((name.into(), amount?)));
    let totals = Totals { amounts: amounts.collect(), gpus: gpus.into_iter().collect() };
    let says_nothing = totals.amounts.is_empty() && totals.gpus.is_empty();
    (!says_nothing).then_some(totals)
}

/// A number that is not negative.
fn number(at: &Json<'_>, name: &str) -> Option<f64> {
    let value = at.get(name)?;
    let number = value.value().as_f64();
    if number.is_none() {
        Findings::push(at.findings(), &at.path_of(name), "must be a number");
    }
    number.filter(|number| *number >= 0.0)
}
