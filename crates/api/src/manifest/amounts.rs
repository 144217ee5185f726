//! Resources: requests of members and supply of nodes.
//!
//! GPUs are separated from the lists here, because everywhere else they are devices and not amounts.

use muster_core::device::{GpuKind, GpuRequest, MAX_DEVICES, WHOLE};
use muster_core::gang::Request;
use muster_core::quantity::Quantity;
use muster_core::resource::{NamedAmounts, base_units, is_gpu};

use crate::yaml::fields::Fields;
use crate::yaml::names::{KEY_RULE, is_key};
use crate::yaml::value::Value;

/// The GPU resource when none is named.
pub(crate) const GPU: &str = "nvidia.com/gpu";
/// The largest amount of one resource of a member or a node: a pebibyte of memory. Sums over every member and node then
/// stay far inside 64 bits.
pub(crate) const MAX_AMOUNT: u64 = 1 << 50;

/// One resource of a list.
pub(crate) struct Listed<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// Its amount in base units; thousandths of a device for GPUs.
    pub(crate) amount: u64,
    /// Where it is written.
    pub(crate) value: Value<'a>,
}

/// The request of each member of a role.
pub(crate) fn request(resources: &Value<'_>) -> Request {
    let (amounts, gpus) = amounts(resources, MAX_AMOUNT);
    let mut request = Request { amounts, gpu: None };
    for gpus in gpus {
        match share(gpus.amount) {
            _ if request.gpu.is_some() => gpus.value.error("a role asks for one kind of GPU only"),
            Some((0, _)) => {}
            Some((count, share)) => {
                request.gpu = Some(GpuRequest { resource: gpus.name.into(), count, share });
            }
            None if gpus.amount > u64::from(WHOLE) * u64::from(u16::MAX) => {
                gpus.value.error(format!("must be at most {}", u16::MAX));
            }
            None => {
                gpus.value.error("must be a whole number of GPUs, or a part of one such as 500m");
            }
        }
    }
    request
}

/// The number of devices and the share of each, for this many thousandths: whole devices, or a part of a single one.
pub(crate) fn share(milli: u64) -> Option<(u16, u16)> {
    let whole = u64::from(WHOLE);
    match milli {
        0 => Some((0, WHOLE)),
        part if part < whole => Some((1, u16::try_from(part).ok()?)),
        _ if milli.is_multiple_of(whole) => Some((u16::try_from(milli / whole).ok()?, WHOLE)),
        _ => None,
    }
}

/// The supply of a node or an offering: amounts from `allocatable`, GPUs from there or from `gpu`.
pub(crate) fn supply(fields: &Fields<'_>) -> (NamedAmounts, Option<GpuKind>, u16) {
    let listed = fields.need("allocatable").map(|value| amounts(&value, MAX_AMOUNT));
    let (amounts, mut gpus) = listed.unwrap_or_default();
    if let Some(second) = gpus.get(1) {
        second.value.error("a node has one kind of GPU only");
    }
    gpus.truncate(1);
    let listed = gpus.pop().and_then(|gpus| {
        let most = MAX_DEVICES as u64;
        let (count, rest) = (gpus.amount / u64::from(WHOLE), gpus.amount % u64::from(WHOLE));
        if rest > 0 || count > most {
            gpus.value.error(format!("must be a whole number of GPUs, at most {most}"));
            return None;
        }
        Some((gpus.name, u16::try_from(count).ok()?, gpus.value))
    });
    let Some(described) = fields.get("gpu").and_then(|value| value.fields()) else {
        let kind =
            |resource: &str| GpuKind { resource: resource.into(), model: "".into(), memory: 0 };
        let (kind, count) = listed.map_or((None, 0), |(name, count, _)| (Some(kind(name)), count));
        return (amounts, kind.filter(|_| count > 0), count);
    };
    let (kind, count) = devices(&described, listed);
    described.done();
    (amounts, kind, count)
}

/// Reads `gpu: {model, memory, count, resource}` and checks it against the GPUs that `allocatable` lists.
fn devices(gpu: &Fields<'_>, listed: Option<(&str, u16, Value<'_>)>) -> (Option<GpuKind>, u16) {
    let model = gpu.text("model").unwrap_or_default();
    let memory = gpu.get("memory").and_then(|value| bytes(&value)).unwrap_or_default();
    let resource = gpu.get("resource").and_then(|value| {
        value.text_with(is_gpu_key, "must be the name of a GPU resource, such as `nvidia.com/gpu`")
    });
    let count = gpu.get("count").and_then(|value| value.count(1..=MAX_DEVICES as u32));
    let count = count.and_then(|count| u16::try_from(count).ok());
    let resource = resource.or(listed.as_ref().map(|(name, ..)| *name)).unwrap_or(GPU);
    if let Some((name, listed, value)) = &listed {
        if *name != resource || count.is_some_and(|count| count != *listed) {
            value.error("does not agree with `gpu`: leave one of the two out");
        }
    } else if gpu.get("count").is_none() {
        gpu.missing("count");
    }
    let count = count.or(listed.map(|(_, count, _)| count)).unwrap_or_default();
    (Some(GpuKind { resource: resource.into(), model: model.into(), memory }), count)
}

fn is_gpu_key(text: &str) -> bool {
    is_key(text) && is_gpu(text)
}

/// An amount of memory in bytes.
pub(crate) fn bytes(value: &Value<'_>) -> Option<u64> {
    let bytes = not_negative(value)?.ceil_units().filter(|bytes| *bytes <= MAX_AMOUNT);
    if bytes.is_none() {
        value.error("is too large");
    }
    bytes
}

/// Named amounts of up to `most` base units each, without GPUs.
fn amounts<'a>(value: &Value<'a>, most: u64) -> (NamedAmounts, Vec<Listed<'a>>) {
    let (gpus, rest): (Vec<_>, Vec<_>) =
        listed(value, most).into_iter().partition(|listed| is_gpu(listed.name));
    (rest.into_iter().map(|listed| (listed.name.into(), listed.amount)).collect(), gpus)
}

/// Every readable resource of a list, up to `most` base units each except GPUs.
pub(crate) fn listed<'a>(value: &Value<'a>, most: u64) -> Vec<Listed<'a>> {
    let mut found = Vec::new();
    for (name, value) in value.pairs().unwrap_or_default() {
        if !is_key(name) {
            value.error(format!("a resource name {KEY_RULE}"));
        }
        let Some(quantity) = not_negative(&value) else { continue };
        let amount = if is_gpu(name) {
            let milli = quantity.ceil_milli().filter(|milli| i64::try_from(*milli).is_ok());
            if milli.is_some_and(|milli| Quantity::milli(milli) != quantity) {
                value.error("a GPU is divided into thousandths: write 500m or 0.5");
                continue;
            }
            milli
        } else {
            base_units(name, quantity).filter(|amount| *amount <= most)
        };
        match amount {
            Some(amount) => found.push(Listed { name, amount, value }),
            None => value.error("is too large"),
        }
    }
    found
}

fn not_negative(value: &Value<'_>) -> Option<Quantity> {
    let quantity: Quantity = value.parsed("a quantity such as 8, 500m or 80Gi")?;
    if quantity.is_negative() {
        value.error(format!("must not be negative, and is {quantity}"));
        return None;
    }
    Some(quantity)
}
