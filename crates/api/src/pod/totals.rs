//! Sums of what several containers or members take.

use std::collections::BTreeMap;

use muster_core::gang::Request;
use muster_core::quantity::Quantity;
use muster_core::resource::{NamedAmounts, base_units};
use serde::Serialize;

use crate::foreign::json::Findings;
use crate::manifest::amounts::MAX_AMOUNT;
use crate::pod::request::GpuNames;

/// What several of something take together.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Totals {
    /// Everything but GPUs, in base units.
    pub amounts: NamedAmounts,
    /// GPUs by resource, in thousandths of a device.
    pub gpus: NamedAmounts,
}

impl Totals {
    /// Whether it is nothing at all.
    pub fn is_zero(&self) -> bool {
        self.amounts.values().chain(self.gpus.values()).all(|amount| *amount == 0)
    }
    /// Subtracts the requests of so many members.
    pub fn without(&mut self, request: &Request, members: u32) {
        for (name, each) in &request.amounts {
            take(&mut self.amounts, name, each.saturating_mul(u64::from(members)));
        }
        if let Some(gpu) = &request.gpu {
            let each = request.gpu_milli();
            take(&mut self.gpus, &gpu.resource, each.saturating_mul(u64::from(members)));
        }
    }
    pub(crate) fn add(&mut self, other: &Totals) {
        join(self, other, u64::saturating_add);
    }
    pub(crate) fn raise(&mut self, other: &Totals) {
        join(self, other, u64::max);
    }
    /// Sets what `other` names, and leaves the rest.
    pub(crate) fn replace(&mut self, other: Totals) {
        self.amounts.extend(other.amounts);
        self.gpus.extend(other.gpus);
    }
}

fn take(amounts: &mut NamedAmounts, name: &str, less: u64) {
    if let Some(amount) = amounts.get_mut(name) {
        *amount = amount.saturating_sub(less);
    }
}

fn join(into: &mut Totals, other: &Totals, both: fn(u64, u64) -> u64) {
    let lists = [(&mut into.amounts, &other.amounts), (&mut into.gpus, &other.gpus)];
    for (into, other) in lists {
        for (name, amount) in other {
            let slot = into.entry(name.clone()).or_default();
            *slot = both(*slot, *amount);
        }
    }
}

/// One resource as listed: its field, its name, and its quantity as written.
pub(crate) type Entry<'a> = (String, &'a str, &'a str);

/// What a list of resources comes to. A quantity that is none, or is below zero, is a finding.
pub(crate) fn listed<'a>(
    entries: impl IntoIterator<Item = Entry<'a>>,
    gpus: &GpuNames,
    findings: &Findings,
) -> Totals {
    let mut totals = Totals::default();
    for (field, name, written) in entries {
        let quantity: Quantity = match written.parse() {
            Ok(quantity) => quantity,
            Err(error) => {
                findings.push(&field, error);
                continue;
            }
        };
        if quantity.is_negative() {
            findings.push(&field, format!("must not be negative, and is {quantity}"));
            continue;
        }
        let gpu = gpus.is_gpu(name);
        let amount = if gpu { quantity.ceil_milli() } else { base_units(name, quantity) };
        match amount.filter(|amount| *amount <= MAX_AMOUNT) {
            Some(amount) if gpu => totals.gpus.insert(name.into(), amount),
            Some(amount) => totals.amounts.insert(name.into(), amount),
            None => {
                findings.push(&field, "is too large");
                None
            }
        };
    }
    totals
}

/// The entries of a mapping of resources found at `field`.
pub(crate) fn entries<'a>(
    list: &'a BTreeMap<String, crate::pod::resources::Amount>,
    field: &'a str,
) -> impl Iterator<Item = Entry<'a>> {
    let entry = move |(name, amount): (&'a String, &'a crate::pod::resources::Amount)| {
        (crate::yaml::value::join(field, name), name.as_str(), amount.0.as_str())
    };
    list.iter().map(entry)
}
