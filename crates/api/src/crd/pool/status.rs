//! What there is of a pool.

use muster_core::World;
use muster_core::health::Record;
use muster_core::id::PoolIdx;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::condition::Condition;
use crate::crd::values::stamp::Stamp;

/// What there is of a pool.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolStatus {
    /// The generation of the spec that this is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Nodes, those that are coming included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<i32>,
    /// Nodes that are ready and show every GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<i32>,
    /// GPUs of all its nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<i32>,
    /// What its nodes cost per hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hourly_spend: Option<f64>,
    /// How many free nodes it should have now, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// Offerings that lately had nothing to give, or let somebody down. Whoever decides next goes by them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 1024),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub offerings: Vec<OfferingStatus>,
    /// Its state, aspect by aspect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
}

impl PoolStatus {
    /// How a pool of the World stands, and what it was last said to want.
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

/// What is remembered of an offering.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfferingStatus {
    /// Which one: its instance type, zone and capacity type.
    #[schemars(length(max = 1024))]
    pub name: String,
    /// Failures since the last node that came up.
    #[serde(default)]
    pub failures: u32,
    /// When the last one was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<Stamp>,
    /// When its provider last had nothing to give, and has given nothing since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub out_of_stock: Option<Stamp>,
}

impl OfferingStatus {
    /// As the World takes it in again.
    pub fn remembered(&self) -> Record {
        let time = |stamp: Option<Stamp>| stamp.map(|Stamp(at)| at);
        Record {
            failures: self.failures,
            last_failure: time(self.last_failure),
            out_since: time(self.out_of_stock),
        }
    }
}

/// Offerings of a pool of which something is remembered. Two that are called the same are told of as one.
fn remembered(world: &World, at: PoolIdx) -> Vec<OfferingStatus> {
    let mut told: Vec<OfferingStatus> = Vec::new();
    for offering in &world.pools()[at].offerings {
        let name = offering.spec.name();
        let Some(was) = offering.health.remembered(world.now()) else { continue };
        if told.iter().any(|one| one.name == name) {
            continue;
        }
        let Record { failures, last_failure, out_since } = was;
        told.push(OfferingStatus {
            name,
            failures,
            last_failure: last_failure.map(Stamp),
            out_of_stock: out_since.map(Stamp),
        });
    }
    told
}

/// How many free nodes a pool should have now, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Target {
    /// Free nodes wanted: the most that any reason asks for, and spares.
    pub free: u32,
    /// Stopped nodes wanted.
    pub stopped: u32,
    /// Wanted always.
    pub warm: u32,
    /// Wanted beside what is used.
    pub buffer: u32,
    /// Wanted beside what orders wait for.
    pub spare: u32,
    /// Wanted in place of nodes in use that will be gone.
    pub replacing: u32,
    /// Wanted so that elastic gangs can grow.
    pub growth: u32,
    /// Wanted because of the hour.
    pub scheduled: u32,
    /// Wanted because demand is expected; told also where nothing is kept for it.
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
