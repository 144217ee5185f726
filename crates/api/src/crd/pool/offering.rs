//! The offerings of a pool.

use std::collections::BTreeMap;

use muster_core::pool::OfferingSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::gang::constraints::Taint;
use crate::crd::values::amount::{Amount, Amounts};
use crate::crd::values::duration::{Duration, DurationAboveZero};
use crate::crd::values::text::{GpuKey, LabelValue, OfferingName, Text};

/// One kind of node that can be bought, identified by instance type, zone and capacity type.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Offering {
    /// The provider's name of the instance type.
    pub instance_type: LabelValue,
    /// The zone of the nodes.
    pub zone: LabelValue,
    /// The region of the nodes. A stock-out in one zone lowers the expectations for the other zones of its region.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<LabelValue>,
    /// How the nodes are paid for. When empty it follows the pool's `tier`, and is never `spot` unless set. `reserved`
    /// nodes are paid for whether or not they are used.
    #[serde(default = "empty_capacity_type")]
    pub capacity_type: LabelValue,
    /// The price per node and hour.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub price: f64,
    /// Resources of one node that members may use; may include the GPUs.
    #[schemars(extend("maxProperties" = 64))]
    pub allocatable: Amounts,
    /// The GPUs of one node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Devices>,
    /// Labels of the nodes, in addition to the well-known ones.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub labels: BTreeMap<String, LabelValue>,
    /// Taints of the nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub taints: Vec<Taint>,
    /// The largest number of nodes of this offering at one time; unlimited by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max: Option<u32>,
    /// The expected time from the request until a node is ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_time: Option<Duration>,
    /// The expected time from starting a stopped node until it is ready. Nodes of the offering cannot be stopped when
    /// absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<DurationAboveZero>,
}

impl OfferingName {
    /// The name by which orders refer to an offering.
    pub fn of(offering: &OfferingSpec) -> Self {
        let OfferingSpec { instance_type, zone, capacity_type, .. } = offering;
        Self(format!("{instance_type}/{zone}/{capacity_type}"))
    }
}

/// The GPUs of one node.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Devices {
    /// The GPU model, such as `H100`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Text>,
    /// The memory of each GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Amount>,
    /// The number of GPUs; may be omitted where `allocatable` gives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub count: Option<i32>,
    /// The resource name of the GPUs: that in `allocatable`, or `nvidia.com/gpu`, by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<GpuKey>,
}

fn empty_capacity_type() -> LabelValue {
    "".into()
}
