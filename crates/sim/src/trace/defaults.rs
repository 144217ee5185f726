//! Defaults for what a trace does not say about a gang.

use std::sync::Arc;

use muster_core::device::{GpuRequest, MAX_DEVICES, WHOLE};
use muster_core::gang::{GangSpec, Provisioning, Request, RoleSpec};
use muster_core::resource::{CPU, MEMORY, NamedAmounts};

use crate::trace::parse::cell::CellError;
use crate::trace::parse::names::Names;

/// The GPU resource: traces do not name the vendor, and nearly all are of this one.
pub(crate) const GPU: &str = "nvidia.com/gpu";

/// GPUs of one member: how many devices, and the share of each in thousandths.
pub(crate) type Devices = (u16, u16);

/// A gang of which nothing is known but this.
pub(crate) fn gang(
    name: Arc<str>,
    queue: Arc<str>,
    user: Arc<str>,
    roles: Vec<RoleSpec>,
) -> GangSpec {
    GangSpec {
        name,
        queue,
        user,
        priority: 0,
        priority_is_declared: false,
        roles,
        closeness: None,
        provisioning: Provisioning::default(),
        expected_duration: None,
        deadline: None,
        cost_of_waiting: None,
        disruption: muster_core::gang::Disruption::default(),
        scaling: Default::default(),
    }
}

/// A role of exactly this many members, that may run anywhere.
pub(crate) fn role(name: Arc<str>, members: u32, request: Request) -> RoleSpec {
    RoleSpec {
        name,
        min: members,
        max: members,
        request,
        constraints: Default::default(),
        spread: Vec::new(),
    }
}

/// The request of one member: CPU in thousandths, memory in bytes, GPUs.
pub(crate) fn request(names: &mut Names, cpu: u64, memory: u64, gpu: Option<Devices>) -> Request {
    let asked = [(CPU, cpu), (MEMORY, memory)].into_iter().filter(|(_, amount)| *amount > 0);
    let amounts: NamedAmounts = asked.map(|(name, amount)| (names.share(name), amount)).collect();
    let gpu = gpu.map(|(count, share)| GpuRequest { resource: names.share(GPU), count, share });
    Request { amounts, gpu }
}

/// Devices of one member from thousandths of a GPU: a part of one, or whole ones.
pub(crate) fn devices(milli: u64) -> Result<Option<Devices>, CellError> {
    let whole = u64::from(WHOLE);
    match milli {
        0 => Ok(None),
        milli if milli > MAX_DEVICES as u64 * whole => {
            Err(CellError::TooManyGpus { most: MAX_DEVICES })
        }
        milli if milli < whole => Ok(Some((1, milli as u16))),
        milli if milli % whole == 0 => Ok(Some(((milli / whole) as u16, WHOLE))),
        _ => Err(CellError::BrokenGpus),
    }
}
