//! The offerings of a pool.

use std::collections::BTreeMap;

use muster_core::pool::OfferingSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::gang::constraints::Taint;
use crate::crd::values::amount::{Amount, Amounts};
use crate::crd::values::duration::{Duration, DurationAboveZero};
use crate::crd::values::text::{GpuKey, LabelValue, OfferingName, Text};

/// One kind of node that can be bought: instance type, zone and capacity type make it one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Offering {
    /// The provider's name for the machine.
    pub instance_type: LabelValue,
    /// Its zone.
    pub zone: LabelValue,
    /// Its region. A stock-out in one zone speaks against the others of its region.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<LabelValue>,
    /// How it is paid for: when empty as the pool's `tier` says, and never `spot` unasked. `reserved` means: anyway.
    #[serde(default = "nothing_said")]
    pub capacity_type: LabelValue,
    /// Money per node and hour.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub price: f64,
    /// What members may use of one node; may list the GPUs.
    #[schemars(extend("maxProperties" = 64))]
    pub allocatable: Amounts,
    /// Its GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Devices>,
    /// Labels its nodes will carry, beside those that every node has.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub labels: BTreeMap<String, LabelValue>,
    /// Taints its nodes will carry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub taints: Vec<Taint>,
    /// Nodes of this offering at one time; unlimited when nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max: Option<u32>,
    /// What is expected from asking to ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_time: Option<Duration>,
    /// What is expected from waking a stopped node to ready. Its nodes cannot be stopped when nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<DurationAboveZero>,
}

impl OfferingName {
    /// The name by which orders call an offering.
    pub fn of(offering: &OfferingSpec) -> Self {
        let OfferingSpec { instance_type, zone, capacity_type, .. } = offering;
        Self(format!("{instance_type}/{zone}/{capacity_type}"))
    }
}

/// The GPUs of one node.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Devices {
    /// Their model, such as `H100`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Text>,
    /// The memory of each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Amount>,
    /// How many; may be left out where `allocatable` says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub count: Option<i32>,
    /// What they are called among resources: as `allocatable` says, or `nvidia.com/gpu`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<GpuKey>,
}

fn nothing_said() -> LabelValue {
    "".into()
}
