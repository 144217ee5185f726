//! Pools: supplies of nodes, and the offerings they list.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::hardware::constraint::{Labels, Taint};
use crate::hardware::device::GpuKind;
use crate::hardware::resource::{NamedAmounts, TAKEN_GPUS, is_extended, of_others};
use crate::history::demand::Demand;
use crate::history::health::Health;
use crate::id::{ClaimId, ClassIdx, DomainIdx};
use crate::objects::node::NodeSpec;
use crate::objects::proactive::{Consolidate, PoolForecast, Proactive, Timeouts};
use crate::units::calendar::Calendar;
use crate::units::money::Money;
use crate::units::time::Span;

/// One kind of node a pool can request: instance type x zone x capacity type.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OfferingSpec {
    /// The provider's name for the machine.
    pub instance_type: Arc<str>,
    /// Its zone.
    pub zone: Arc<str>,
    /// Its region; empty when unknown.
    #[serde(default)]
    pub region: Arc<str>,
    /// `reserved`, `on-demand`, `spot`, ...
    #[serde(default)]
    pub capacity_type: Arc<str>,
    /// Price of one node per hour.
    pub price: Money,
    /// What members may use of one node, without GPUs.
    pub allocatable: NamedAmounts,
    /// What its GPUs are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuKind>,
    /// GPUs one node must show before it counts as ready, beside every extended resource among the amounts.
    #[serde(default)]
    pub gpus: u16,
    /// Labels its nodes will carry.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// Taints its nodes will carry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    /// Nodes of this offering at one time; unlimited when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
    /// Expected time from request to ready.
    pub boot_time: Span,
    /// Expected time from starting a stopped node to ready; none where nodes cannot be stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Span>,
}

impl OfferingSpec {
    /// The node that a claim of this offering becomes, with so many of its GPUs visible.
    pub fn node(&self, name: Arc<str>, claim: ClaimId, gpus: u16, ready: bool) -> NodeSpec {
        NodeSpec {
            name,
            labels: self.labels.clone(),
            taints: self.taints.clone(),
            allocatable: self.allocatable.clone(),
            gpu: self.gpu.clone(),
            gpus,
            ready,
            claim: Some(claim),
            others: false,
        }
    }
}

/// What a node does not show, or no longer shows, of what its offering promises.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lack<'a> {
    /// Some of its GPUs.
    Gpus,
    /// Some or all of an extended resource.
    Resource(&'a Arc<str>),
}

/// The capacity type of machines that are paid for whether or not they are used.
const RESERVED: &str = "reserved";

/// Prefix of labels that only Muster sets on nodes.
const OWN_LABEL: &str = "muster.sh/";

impl OfferingSpec {
    /// The labels that its nodes carry whichever provisioner made them: without those that Muster sets.
    pub fn shown_labels(&self) -> Labels {
        let shown = self.labels.iter().filter(|(key, _)| !key.starts_with(OWN_LABEL));
        shown.map(|(key, value)| (key.clone(), value.clone())).collect()
    }
    /// Its name within its pool.
    pub fn name(&self) -> String {
        format!("{}/{}/{}", self.instance_type, self.zone, self.capacity_type)
    }
    /// What a node with these amounts and so many GPUs lacks of what the offering promises. Amounts that other pods
    /// hold count as present. CPU and memory differ a little from one machine to the next, and are checked when
    /// members are placed.
    pub fn lacks(&self, shown: &NamedAmounts, gpus: u16) -> Option<Lack<'_>> {
        let of = |name: &str| shown.get(name).copied().unwrap_or(0);
        if u64::from(gpus).saturating_add(of(TAKEN_GPUS)) < u64::from(self.gpus) {
            return Some(Lack::Gpus);
        }
        let mut promised = self.allocatable.iter().filter(|(name, _)| is_extended(name));
        let short = promised
            .find(|(name, promised)| of(name).saturating_add(of(&of_others(name))) < **promised);
        short.map(|(name, _)| Lack::Resource(name))
    }
    /// What one more node adds to the bill per hour: nothing where capacity is reserved and paid.
    pub fn marginal_price(&self) -> Money {
        if &*self.capacity_type == RESERVED { Money::ZERO } else { self.price }
    }
}

/// What a pool never exceeds, claims in progress included.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PoolLimits {
    /// Nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u32>,
    /// Money per hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hourly_spend: Option<Money>,
}

/// A pool as specified.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PoolSpec {
    /// Its name.
    pub name: Arc<str>,
    /// Its tier.
    pub tier: Arc<str>,
    /// Its offerings, in the operator's order of preference.
    pub offerings: Vec<OfferingSpec>,
    /// What it never exceeds.
    #[serde(default)]
    pub limits: PoolLimits,
    /// How long an idle node is kept.
    pub idle_after: Span,
    /// What it keeps ready ahead of need.
    #[serde(default)]
    pub ahead: Proactive,
    /// What may be done about underused nodes.
    #[serde(default)]
    pub consolidate: Consolidate,
    /// How old a node may grow before it is replaced; any age when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expire_after: Option<Span>,
    /// How long each stage of a claim may take.
    #[serde(default)]
    pub patience: Timeouts,
    /// Whether nodes may be bought so that elastic gangs can grow.
    #[serde(default)]
    pub grow: bool,
}

impl PoolSpec {
    /// Whether it may keep idle nodes for longer than their idle time.
    pub fn keeps_nodes(&self) -> bool {
        self.ahead != Proactive::default() || self.consolidate == Consolidate::Never
    }
}

/// What a pool uses, claims in progress included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PoolUsage {
    /// Nodes requested and not yet gone.
    pub nodes: u32,
    /// Their GPUs.
    pub gpus: u32,
    /// What they cost per hour.
    pub hourly: Money,
}

/// An offering in the World.
#[derive(Clone, Debug)]
pub struct Offering {
    /// As specified.
    pub spec: OfferingSpec,
    /// The class its nodes will have.
    pub class: ClassIdx,
    /// Where in the topology tree its nodes will be.
    pub leaf: DomainIdx,
    /// Nodes requested and not yet gone.
    pub nodes: u32,
    /// The record of its failures.
    pub health: Health,
}

/// A pool in the World.
#[derive(Clone, Debug)]
pub struct Pool {
    /// As specified.
    pub spec: PoolSpec,
    /// Its offerings.
    pub offerings: Vec<Offering>,
    /// What is in use.
    pub usage: PoolUsage,
    /// The calendars of its schedules, in their order.
    pub calendars: Vec<Calendar>,
    /// The forecast, if there is one.
    pub outlook: Option<PoolForecast>,
    /// The demand for it.
    pub demand: Demand,
}

impl Pool {
    /// How many more nodes of one offering fit under every limit.
    pub fn room(&self, slot: usize) -> u32 {
        self.room_beside(slot, &self.usage, self.offerings[slot].nodes)
    }
    /// The same, for a hypothetical usage of the pool and of the offering.
    pub fn room_beside(&self, slot: usize, usage: &PoolUsage, offering_nodes: u32) -> u32 {
        let max = self.offerings[slot].spec.max;
        let listed = max.map_or(u32::MAX, |max| max.saturating_sub(offering_nodes));
        listed.min(self.room_within_limits(slot, usage))
    }
    /// Whether only the hourly budget keeps the pool from more nodes of one offering; the rest of the budget then.
    pub fn left_of_budget(&self, slot: usize, usage: &PoolUsage, listed: u32) -> Option<Money> {
        let budget = self.spec.limits.hourly_spend?;
        let max = self.offerings[slot].spec.max;
        let others = max.map_or(u32::MAX, |max| max.saturating_sub(listed));
        let binds = self.room_by_budget(slot, usage) < others.min(self.room_by_count(slot, usage));
        binds.then(|| Money((budget - usage.hourly).0.max(0)))
    }
    /// How many more nodes of one offering fit under the limits that the whole pool shares.
    pub fn room_within_limits(&self, slot: usize, usage: &PoolUsage) -> u32 {
        self.room_by_count(slot, usage).min(self.room_by_budget(slot, usage))
    }
    fn room_by_count(&self, slot: usize, usage: &PoolUsage) -> u32 {
        let limits = &self.spec.limits;
        let mut room = limits.nodes.map_or(u32::MAX, |nodes| nodes.saturating_sub(usage.nodes));
        if let (Some(gpus), each @ 1..) = (limits.gpus, u32::from(self.offerings[slot].spec.gpus)) {
            room = room.min(gpus.saturating_sub(usage.gpus) / each);
        }
        room
    }
    fn room_by_budget(&self, slot: usize, usage: &PoolUsage) -> u32 {
        let price = self.offerings[slot].spec.price.0;
        match (self.spec.limits.hourly_spend, price) {
            (Some(budget), 1..) => {
                u32::try_from((budget - usage.hourly).0.max(0) / price).unwrap_or(u32::MAX)
            }
            _ => u32::MAX,
        }
    }
}
