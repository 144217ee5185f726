//! Resources: what members ask for, what nodes offer, what queues are held to.
//!
//! GPUs are taken out of the lists here, because everywhere else they are devices and not amounts.

use muster_core::device::{GpuKind, GpuRequest, MAX_DEVICES, WHOLE};
use muster_core::gang::Request;
use muster_core::quantity::Quantity;
use muster_core::queue::Quota;
use muster_core::resource::{NamedAmounts, base_units, is_gpu};

use crate::fields::Fields;
use crate::names::{KEY_RULE, is_key};
use crate::value::Value;

/// The GPU resource when nobody names another.
const GPU: &str = "nvidia.com/gpu";
/// The most of one resource a member asks for or a node has: a pebibyte of memory. Sums over every member
/// and node then stay far inside 64 bits.
const MAX_AMOUNT: u64 = 1 << 50;

/// A GPU resource found in a list: its name, thousandths, and where it was written.
struct Gpus<'a> {
    resource: &'a str,
    milli: u64,
    value: Value<'a>,
}

/// What each member of a role asks for.
pub(crate) fn request(resources: &Value<'_>) -> Request {
    let (amounts, gpus) = amounts(resources, MAX_AMOUNT);
    let mut request = Request { amounts, gpu: None };
    for gpus in gpus {
        match share(gpus.milli) {
            _ if request.gpu.is_some() => gpus.value.error("a role asks for one kind of GPU only"),
            Some((0, _)) => {}
            Some((count, share)) => {
                request.gpu = Some(GpuRequest { resource: gpus.resource.into(), count, share });
            }
            None if gpus.milli > u64::from(WHOLE) * u64::from(u16::MAX) => {
                gpus.value.error(format!("must be at most {}", u16::MAX));
            }
            None => {
                gpus.value.error("must be a whole number of GPUs, or a part of one such as 500m");
            }
        }
    }
    request
}

/// Devices and the part of each, for this many thousandths: whole ones, or a part of a single one.
fn share(milli: u64) -> Option<(u16, u16)> {
    let whole = u64::from(WHOLE);
    match milli {
        0 => Some((0, WHOLE)),
        part if part < whole => Some((1, u16::try_from(part).ok()?)),
        _ if milli.is_multiple_of(whole) => Some((u16::try_from(milli / whole).ok()?, WHOLE)),
        _ => None,
    }
}

/// What a queue is promised or held to.
pub(crate) fn quota(value: &Value<'_>) -> Quota {
    let (amounts, gpus) = amounts(value, u64::MAX);
    let gpu_milli = gpus.iter().map(|gpus| gpus.milli).reduce(u64::saturating_add);
    Quota { amounts, gpu_milli }
}

/// What a node or an offering has: amounts from `allocatable`, GPUs from there or from `gpu`.
pub(crate) fn supply(fields: &Fields<'_>) -> (NamedAmounts, Option<GpuKind>, u16) {
    let listed = fields.need("allocatable").map(|value| amounts(&value, MAX_AMOUNT));
    let (amounts, mut gpus) = listed.unwrap_or_default();
    if let Some(second) = gpus.get(1) {
        second.value.error("a node has one kind of GPU only");
    }
    gpus.truncate(1);
    let listed = gpus.pop().and_then(|gpus| {
        let most = MAX_DEVICES as u64;
        let (count, rest) = (gpus.milli / u64::from(WHOLE), gpus.milli % u64::from(WHOLE));
        if rest > 0 || count > most {
            gpus.value.error(format!("must be a whole number of GPUs, at most {most}"));
            return None;
        }
        Some((gpus.resource, u16::try_from(count).ok()?, gpus.value))
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

/// Reads `gpu: {model, memory, count, resource}` and holds it against what `allocatable` lists.
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

/// Named amounts up to `most` base units each, GPUs apart in thousandths.
fn amounts<'a>(value: &Value<'a>, most: u64) -> (NamedAmounts, Vec<Gpus<'a>>) {
    let mut amounts = NamedAmounts::new();
    let mut gpus = Vec::new();
    for (name, value) in value.pairs().unwrap_or_default() {
        if !is_key(name) {
            value.error(format!("a resource name {KEY_RULE}"));
        }
        let Some(quantity) = not_negative(&value) else { continue };
        if is_gpu(name) {
            let milli = quantity.ceil_milli().and_then(|milli| i64::try_from(milli).ok());
            match milli {
                Some(milli) if Quantity::milli(milli) == quantity => {
                    gpus.push(Gpus { resource: name, milli: milli.unsigned_abs(), value });
                }
                Some(_) => value.error("a GPU is divided into thousandths: write 500m or 0.5"),
                None => value.error("is too large"),
            }
        } else {
            match base_units(name, quantity).filter(|amount| *amount <= most) {
                Some(amount) => drop(amounts.insert(name.into(), amount)),
                None => value.error("is too large"),
            }
        }
    }
    (amounts, gpus)
}

fn not_negative(value: &Value<'_>) -> Option<Quantity> {
    let quantity: Quantity = value.parsed("a quantity such as 8, 500m or 80Gi")?;
    if quantity.is_negative() {
        value.error(format!("must not be negative, and is {quantity}"));
        return None;
    }
    Some(quantity)
}
