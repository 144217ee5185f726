//! Queues of KAI: what each has of GPUs, cores and memory by itself, and how it shares the rest.

use muster_core::resource::{CPU, MEMORY};

use crate::dialects::volcano_queue::QueueTerms;
use crate::foreign::json::{Findings, Json};
use crate::pod::totals::Totals;

const PARENT: &str = "parentQueue";
const RESOURCES: &str = "resources";
/// KAI speaks of GPUs without saying whose.
const GPUS: &str = "nvidia.com/gpu";
/// KAI counts memory in millions of bytes.
const MEGA: f64 = 1e6;

/// Whether a queue is written in KAI's words.
pub(crate) fn is_it(spec: &Json<'_>) -> bool {
    spec.get(RESOURCES).is_some() || spec.get(PARENT).is_some()
}

/// A quota is what a queue gets back when it wants it, so what it deserves; `-1` is no bound and nothing to count on.
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

/// One figure of every resource, as far as it is a bound.
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
