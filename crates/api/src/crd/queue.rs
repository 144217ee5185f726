//! `kind: Queue`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::condition::Condition;
use crate::crd::definition::{Column, Resource};
use crate::crd::gang::constraints::Expression;
use crate::crd::values::amount::{Amount, Amounts};
use crate::crd::values::duration::{Duration, DurationAboveZero};
use crate::crd::values::text::{Label, LabelValue, Name, Text};

/// A tenant's place in a tree of shares.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Queue {
    /// What its gangs may have.
    pub spec: QueueSpec,
    /// What its gangs have. Written by Muster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<QueueStatus>,
}

impl Resource for Queue {
    const KIND: &'static str = "Queue";
    const PLURAL: &'static str = "queues";
    const SHORT: &'static str = "mq";
    const COLUMNS: &'static [Column] = &[
        Column::text("Parent", ".spec.parent"),
        Column::number("Weight", ".spec.weight"),
        Column::text("Held", ".status.heldGpus"),
        Column::number("Running", ".status.running").when_wide(),
        Column::number("Waiting", ".status.waiting"),
        Column::AGE,
    ];
}

/// What a queue's gangs may have.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueSpec {
    /// The queue above it; it stands at the top when nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<Name>,
    /// Its part of what is divided among its siblings.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub weight: i32,
    /// What it can count on. GPUs of every vendor count together.
    #[serde(default, skip_serializing_if = "Amounts::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub guaranteed: Amounts,
    /// What it and all below it never exceed.
    #[serde(default, skip_serializing_if = "Amounts::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub limit: Amounts,
    /// What one user never exceeds within it and all below it.
    #[serde(default, skip_serializing_if = "Amounts::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub user_limit: Amounts,
    /// How long it takes until past use counts half; as in the queue above when nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub half_life: Option<Duration>,
    /// The tiers of pools its gangs may use; all when nothing is said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub tiers: Vec<Text>,
    /// After so long a gang may be stopped so that another of the queue has its turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_slice: Option<DurationAboveZero>,
    /// What it lent is back within so long; ten minutes when nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reclaim_within: Option<Duration>,
    /// So many of its gangs are stopped for others' sake within an hour; any number when nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub evictions_per_hour: Option<i32>,
    /// The namespaces whose gangs may use it. When nothing is said, on Kubernetes that of its own name, and every one for
    /// the queue `default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Namespaces>,
    /// The highest priority of its gangs and those below. When nothing is said, priorities count that the API server has
    /// written on pods, and declared ones up to 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_priority: Option<i32>,
    /// Whether gangs that cannot be preempted may start in it.
    #[serde(default)]
    pub allow_non_preemptible: NonPreemptible,
    /// The highest `costOfWaiting` of its gangs and those below; any when nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_cost_of_waiting: Option<f64>,
    /// The longest `disruption.grace` of its gangs and those below; one hour on Kubernetes when nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_grace: Option<Duration>,
    /// The longest `disruption.minRuntime` of its gangs and those below; one day on Kubernetes when nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_min_runtime: Option<Duration>,
    /// The longest `provisioning.timeout` of its gangs and those below; one day on Kubernetes when nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_provisioning_timeout: Option<DurationAboveZero>,
}

/// Namespaces by name, by label, or both: one that either names may use the queue.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Namespaces {
    /// By name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "set"))]
    pub names: Vec<Label>,
    /// By their labels. An empty selector matches every namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
}

/// Labels, all of which must be as written.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels and their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 20))]
    pub match_labels: BTreeMap<String, LabelValue>,
    /// Expressions over labels: `In`, `NotIn`, `Exists`, `DoesNotExist`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), extend("x-kubernetes-list-type" = "atomic"))]
    pub match_expressions: Vec<Expression>,
}

/// Whether gangs that cannot be preempted may start in a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub enum NonPreemptible {
    /// They never start.
    Never,
    /// They start within what the queue is guaranteed, or on what no queue is guaranteed: what was lent can always be
    /// reclaimed.
    #[default]
    WithinGuarantee,
    /// They start wherever there is room.
    Always,
}

/// What a queue's gangs have.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueStatus {
    /// The generation of the spec that this is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// GPUs of every vendor that its gangs and those below hold, with those that are ordered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_gpus: Option<Amount>,
    /// Gangs that wait, in it and below.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<i32>,
    /// Gangs that run, in it and below.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<i32>,
    /// Its state, aspect by aspect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
}

fn one() -> i32 {
    1
}
