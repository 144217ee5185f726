//! `kind: Pool`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::definition::{Column, Resource};
use crate::crd::pool::offering::Offering;
use crate::crd::pool::proactive::{Buffer, Consolidate, Forecast, Schedule, Spare, Timeouts, Warm};
use crate::crd::pool::provider::Provider;
use crate::crd::pool::status::PoolStatus;
use crate::crd::values::duration::{Duration, DurationAboveZero};
use crate::crd::values::text::Text;
use crate::manifest::pool::pool_spec::IDLE_AFTER;

/// A supply of nodes: what can be bought, its limits, and what is kept ready.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "size(self.metadata.name) <= 63", "message": "a pool's name is a label of its nodes, and has 63 characters at most"},
]))]
pub struct Pool {
    /// What can be bought, and what is kept ready.
    pub spec: PoolSpec,
    /// The state of the pool. Written by Muster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<PoolStatus>,
}

impl Resource for Pool {
    const KIND: &'static str = "Pool";
    const PLURAL: &'static str = "pools";
    const SHORT: &'static str = "mpool";
    const COLUMNS: &'static [Column] = &[
        Column::text("Tier", ".spec.tier"),
        Column::number("Nodes", ".status.nodes"),
        Column::number("Ready", ".status.ready").when_wide(),
        Column::number("GPUs", ".status.gpus"),
        Column::fraction("Spend", ".status.hourlySpend"),
        Column::number("Target", ".status.target.free").when_wide(),
        Column::AGE,
    ];
}

/// What can be bought, and what is kept ready.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "has(self.offerings) || (has(self.provider) && has(self.provider.local))", "message": "only a pool of the machine's own nodes can do without offerings"},
    {"rule": "has(self.provider) == has(oldSelf.provider)", "message": "who boots a pool's nodes does not change: make another pool"},
]))]
pub struct PoolSpec {
    /// The name of this kind of supply in queues, such as `reserved`, `on-demand` or `spot`.
    #[schemars(extend("x-kubernetes-validations" = [
        {"rule": "self == oldSelf", "message": "a pool's tier does not change: make another pool"},
    ]))]
    pub tier: Text,
    /// The provider that boots the pool's nodes: one of these. A simulated cloud by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<Provider>,
    /// The kinds of nodes that can be bought. Of equally good offerings the first is used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 1000),
        extend(
            "x-kubernetes-list-type" = "map",
            "x-kubernetes-list-map-keys" = ["instanceType", "zone", "capacityType"]
        )
    )]
    pub offerings: Vec<Offering>,
    /// The limits of the pool, including nodes that are being provisioned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// Whether the pool keeps nodes ready ahead of demand.
    #[serde(default)]
    pub mode: PoolMode,
    /// Nodes that are always kept ready for new gangs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warm: Option<Warm>,
    /// Free nodes in addition to those in use: one of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Buffer>,
    /// Nodes requested in addition to those that orders wait for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spare: Option<Spare>,
    /// Minimum sizes of the pool at certain hours.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub schedules: Vec<Schedule>,
    /// Free nodes for forecast demand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forecast: Option<Forecast>,
    /// How long a node above the target may be idle before it is released.
    #[serde(default = "default_idle_after")]
    pub idle_after: Duration,
    /// The age at which a node takes no new members and is released once it is empty; unlimited by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expire_after: Option<DurationAboveZero>,
    /// What happens to underused nodes.
    #[serde(default)]
    pub consolidate: Consolidate,
    /// How long a claim may wait for its machine, its node and its GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<Timeouts>,
    /// Whether nodes may be bought so that elastic gangs can grow.
    #[serde(default)]
    pub buy_for_growth: bool,
}

/// The limits of a pool.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// The largest number of nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// The largest number of GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u32>,
    /// The highest cost per hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub hourly_spend: Option<f64>,
}

/// Whether a pool keeps nodes ready ahead of demand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub enum PoolMode {
    /// Nodes are kept ready as the fields below specify.
    #[default]
    Proactive,
    /// No nodes are kept ready, whatever the fields below specify.
    Reactive,
}

fn default_idle_after() -> Duration {
    Duration(IDLE_AFTER)
}
