//! The status of a Pool.

use muster_core::World;
use muster_core::health::Record;
use muster_core::id::PoolIdx;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::condition::Condition;
use crate::crd::values::stamp::Stamp;

/// The state of a pool.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolStatus {
    /// The generation of the spec that this status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The number of nodes, including those that are being provisioned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<i32>,
    /// The number of nodes that are ready and show every GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<i32>,
    /// The number of GPUs of all nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<i32>,
    /// The cost of all nodes per hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hourly_spend: Option<f64>,
    /// The number of free nodes the pool should have now, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// Offerings that were recently out of stock or failed. Restored from here when Muster restarts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 1024),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub offerings: Vec<OfferingStatus>,
    /// The conditions of the pool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
}

impl PoolStatus {
    /// The status of a pool of the World, with its last target.
    pub fn of(world: &World, at: PoolIdx, target: Option<muster_core::plan::Target>) -> Self {
        let usage = &world.pools()[at].usage;
        let mine = world.claims().values().filter(|claim| claim.offering.pool == at);
        let ready = mine.filter(|claim| claim.is_ready()).count();
        let count = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
        Self {
            nodes: Some(count(usage.nodes)),
            ready: i32::try_from(ready).ok(),
            gpus: Some(count(usage.gpus)),
            hourly_spend: Some(usage.hourly.as_units()),
            target: target.map(Target::from),
            offerings: remembered(world, at),
            ..Self::default()
        }
    }
}

/// The recorded failures of an offering.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfferingStatus {
    /// The offering: its instance type, zone and capacity type.
    #[schemars(length(max = 1024))]
    pub name: String,
    /// The number of failures since the last node that became ready.
    #[serde(default)]
    pub failures: u32,
    /// When the last failure occurred.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<Stamp>,
    /// When the provider was last out of stock, if it has provided no node since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub out_of_stock: Option<Stamp>,
}

impl OfferingStatus {
    /// The record that is restored into the World.
    pub fn remembered(&self) -> Record {
        let time = |stamp: Option<Stamp>| stamp.map(|Stamp(at)| at);
        Record {
            failures: self.failures,
            last_failure: time(self.last_failure),
            out_since: time(self.out_of_stock),
        }
    }
}

/// The offerings of a pool with recorded failures. Offerings of the same name are reported once.
fn remembered(world: &World, at: PoolIdx) -> Vec<OfferingStatus> {
    let mut reported: Vec<OfferingStatus> = Vec::new();
    for offering in &world.pools()[at].offerings {
        let name = offering.spec.name();
        let Some(was) = offering.health.remembered(world.now()) else { continue };
        if reported.iter().any(|one| one.name == name) {
            continue;
        }
        let Record { failures, last_failure, out_since } = was;
        reported.push(OfferingStatus {
            name,
            failures,
            last_failure: last_failure.map(Stamp),
            out_of_stock: out_since.map(Stamp),
        });
    }
    reported
}

/// The number of free nodes a pool should have now, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Target {
    /// The total number of free nodes wanted: the largest number that any reason requires, plus spares.
    pub free: u32,
    /// The number of stopped nodes wanted.
    pub stopped: u32,
    /// Nodes that are always kept ready.
    pub warm: u32,
    /// Nodes in addition to those in use.
    pub buffer: u32,
    /// Nodes in addition to those that orders wait for.
    pub spare: u32,
    /// Replacements for nodes in use that are about to be lost.
    pub replacing: u32,
    /// Nodes for elastic gangs to grow onto.
    pub growth: u32,
    /// Nodes that a schedule requires.
    pub scheduled: u32,
    /// Nodes for forecast demand; reported also where none are kept for it.
    pub expected: u32,
}

impl From<muster_core::plan::Target> for Target {
    fn from(target: muster_core::plan::Target) -> Self {
        let muster_core::plan::Target {
            free,
            stopped,
            warm,
            buffer,
            spare,
            replacing,
            growth,
            scheduled,
            expected,
        } = target;
        Self { free, stopped, warm, buffer, spare, replacing, growth, scheduled, expected }
    }
}
