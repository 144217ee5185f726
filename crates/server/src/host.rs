//! The contract between the server and the host behind it.
//!
//! Queue-dependent rights are checked by the host against the [`Caller`]: only the host knows the queue of a gang at
//! the instant of the change.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use muster_api::Finding;
use muster_api::crd::Stamp;
use muster_core::time::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::{Board, Caller, Kind};

/// A future answer.
pub type Answer<T> = Pin<Box<dyn Future<Output = Result<T, Refused>> + Send>>;

/// A host that runs gangs: the embedded control plane, or the controller on Kubernetes.
pub trait Host: Send + Sync + 'static {
    /// The board with all objects and their changes.
    fn board(&self) -> &Arc<Board>;
    /// Readiness; the reason if it is not ready.
    fn ready(&self) -> Result<(), String>;
    /// Applies manifests, YAML or JSON: all or none. With `dry_run` it only reports what would change.
    fn apply(&self, by: Caller, manifests: String, dry_run: bool) -> Answer<Vec<Applied>>;
    /// Removes an object. A running gang is stopped first, then deleted; a finished gang is deleted at once.
    fn remove(&self, by: Caller, kind: Kind, name: String) -> Answer<()>;
    /// Changes a gang, and returns it.
    fn change(&self, by: Caller, gang: GangName, change: Change) -> Answer<Arc<Value>>;
    /// Explains why a gang waits, when it starts, and what would start it now.
    fn why(&self, gang: GangName) -> Answer<Why>;
    /// Forecasts the starts of these gangs if they were submitted now.
    fn what_if(&self, by: Caller, manifests: String) -> Answer<Vec<WhatIf>>;
    /// Reports usage.
    fn usage(&self, asked: UsageRequest) -> Answer<Vec<Usage>>;
    /// Opens the output of members.
    fn logs(&self, gang: GangName, which: LogQuery) -> Answer<Logs>;
    /// The host's own metrics, in the Prometheus text format.
    fn metrics(&self) -> String;
}

/// Why a request was refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refused {
    /// No such object.
    #[error("{0}")]
    NotFound(String),
    /// It conflicts with the present state.
    #[error("{0}")]
    Conflict(String),
    /// The caller may not do this.
    #[error("{0}")]
    Forbidden(String),
    /// The request is not valid.
    #[error("{0}")]
    Invalid(String),
    /// The manifests have errors, with positions.
    #[error("{} findings in the manifests", .0.len())]
    Findings(Vec<Finding>),
    /// The idempotency key was used for another request.
    #[error("{0}")]
    KeyReused(String),
    /// This host does not support the operation.
    #[error("{0}")]
    Unsupported(String),
    /// Not possible now; a retry may succeed.
    #[error("{0}")]
    Unavailable(String),
}

/// A gang's namespace and name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct GangName {
    /// Its namespace.
    pub namespace: String,
    /// Its name in the namespace.
    pub name: String,
}

impl std::fmt::Display for GangName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The result of applying one object.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Applied {
    /// Its kind, as stored: a Job is a Gang.
    pub kind: Kind,
    /// Its name.
    pub name: Arc<str>,
    /// What apply did.
    pub effect: AppliedEffect,
    /// Warnings for its owner, such as that an image is not pulled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// What apply did to an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AppliedEffect")]
pub enum AppliedEffect {
    /// It was created.
    Created,
    /// It was created in place of a finished one. The output of the finished one is kept.
    Replaced,
    /// It existed and was changed.
    Changed,
    /// It existed, and is unchanged.
    Unchanged,
}

/// A command for one gang.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Stops it for good. Its record is kept.
    Cancel,
    /// Keeps it from starting until it is released; a running gang goes on.
    Hold,
    /// Lets it start.
    Release,
    /// Sets new bounds of a role.
    Scale {
        /// The role; may be omitted if there is only one.
        role: Option<String>,
        /// Minimum members.
        min: Option<u32>,
        /// Maximum members.
        max: Option<u32>,
    },
}

/// Why a gang waits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Why {
    /// The gang.
    pub name: String,
    /// Sentences, the most important first.
    pub lines: Vec<String>,
    /// When it is expected to start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_start: Option<Stamp>,
}

/// The forecast for a gang.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WhatIf {
    /// The gang.
    pub name: String,
    /// When it would start; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starts: Option<Stamp>,
    /// Nodes that would be bought for it.
    pub nodes: u32,
    /// Their price per hour.
    pub hourly: f64,
    /// The cost of its run at these prices, if it declares its duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// The forecast in sentences.
    pub lines: Vec<String>,
}

/// Which usage to report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UsageRequest {
    /// From this instant.
    pub from: Time,
    /// Until this instant.
    pub to: Time,
    /// The grouping.
    pub by: UsageBy,
}

/// The grouping of usage.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum UsageBy {
    /// By queue.
    Queue,
    /// By user.
    User,
    /// By gang.
    Gang,
    /// By day, in UTC.
    Day,
}

/// Usage of a queue, user, gang or day.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// The queue, user, gang or day.
    pub key: String,
    /// Gangs that ran.
    pub gangs: u64,
    /// Number of times a member ran.
    pub runs: u64,
    /// GPU-seconds held.
    pub gpu_seconds: f64,
    /// CPU-seconds held.
    pub cpu_seconds: f64,
    /// Seconds waited, over all gangs.
    pub waited_seconds: f64,
    /// The cost of their nodes in that time.
    pub cost: f64,
}

/// Which logs to read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LogQuery {
    /// Only the member with this rank.
    pub member: Option<u32>,
    /// An earlier attempt; the latest when absent.
    pub attempt: Option<u32>,
    /// This run, also of an earlier gang of the same name.
    pub run: Option<u64>,
    /// The last lines of each member; all when absent.
    pub tail: Option<usize>,
    /// Whether to follow new output until the gang ends.
    pub follow: bool,
}

/// Output, part by part. A reader that drops the channel ends the stream.
pub type Logs = mpsc::Receiver<LogPart>;

/// Whole lines of output of one member.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogPart {
    /// The member's rank.
    pub member: u32,
    /// Its role.
    pub role: Arc<str>,
    /// Whether it was printed to standard error.
    pub stderr: bool,
    /// One or more lines, with their line breaks.
    pub text: String,
}
