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

/// A tenant's queue, in a tree of queues that share the capacity.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Queue {
    /// The shares and limits of the queue.
    pub spec: QueueSpec,
    /// The state of the queue. Written by Muster.
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

/// The shares and limits of a queue.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueSpec {
    /// The parent of the queue; the queue is at the top of the tree by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<Name>,
    /// The weight of the queue against its siblings when capacity is shared.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub weight: i32,
    /// Resources that the queue is guaranteed. GPUs of all vendors are counted together.
    #[serde(default, skip_serializing_if = "Amounts::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub guaranteed: Amounts,
    /// The most that the queue and all queues below it may hold.
    #[serde(default, skip_serializing_if = "Amounts::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub limit: Amounts,
    /// The most that one user may hold in the queue and all queues below it.
    #[serde(default, skip_serializing_if = "Amounts::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub user_limit: Amounts,
    /// The time after which past usage counts half; that of the parent by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub half_life: Option<Duration>,
    /// The tiers of pools that its gangs may use; all by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub tiers: Vec<Text>,
    /// The time after which a gang may be stopped to let another gang of the queue run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_slice: Option<DurationAboveZero>,
    /// The time within which capacity that the queue has lent is reclaimed; ten minutes by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reclaim_within: Option<Duration>,
    /// The largest number of its gangs that are preempted within an hour; unlimited by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub evictions_per_hour: Option<i32>,
    /// The namespaces whose gangs may use the queue. By default, on Kubernetes, the namespace with the queue's name,
    /// and every namespace for the queue `default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Namespaces>,
    /// The highest priority of gangs in the queue and below it. By default, priorities that the API server has written
    /// on pods are accepted, and declared ones up to 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_priority: Option<i32>,
    /// Whether gangs that cannot be preempted may start in the queue.
    #[serde(default)]
    pub allow_non_preemptible: NonPreemptible,
    /// The highest `costOfWaiting` of gangs in the queue and below it; unlimited by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_cost_of_waiting: Option<f64>,
    /// The longest `disruption.grace` of gangs in the queue and below it; one hour on Kubernetes by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_grace: Option<Duration>,
    /// The longest `disruption.minRuntime` of gangs in the queue and below it; one day on Kubernetes by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_min_runtime: Option<Duration>,
    /// The longest `provisioning.timeout` of gangs in the queue and below it; one day on Kubernetes by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_provisioning_timeout: Option<DurationAboveZero>,
}

/// Namespaces by name, by label, or both: a namespace that either selects may use the queue.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Namespaces {
    /// Namespaces by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "set"))]
    pub names: Vec<Label>,
    /// Namespaces by their labels. An empty selector matches every namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
}

/// A label selector; all of its requirements must match.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels that must have these values.
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
    /// Such gangs never start.
    Never,
    /// Such gangs start within the guarantee of the queue, or on capacity that no queue is guaranteed, so that lent
    /// capacity can always be reclaimed.
    #[default]
    WithinGuarantee,
    /// Such gangs start wherever there is capacity.
    Always,
}

/// The state of a queue.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueStatus {
    /// The generation of the spec that this status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// GPUs of all vendors that gangs in the queue and below it hold, including those on order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_gpus: Option<Amount>,
    /// The number of waiting gangs in the queue and below it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<i32>,
    /// The number of running gangs in the queue and below it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<i32>,
    /// The conditions of the queue.
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
