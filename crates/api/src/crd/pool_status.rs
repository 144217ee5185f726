//! What there is of a pool.

use muster_core::World;
use muster_core::id::PoolIdx;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Condition;

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
            ..Self::default()
        }
    }
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
