//! What the server asks of the host it is mounted in.
//!
//! Rights that depend on a queue are the host's to hold against the [`Caller`]: only it knows which queue a gang is in at
//! the instant it is changed.

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

/// An answer that may take a while.
pub type Answer<T> = Pin<Box<dyn Future<Output = Result<T, Refused>> + Send>>;

/// Whatever runs gangs: the embedded control plane, or the controller on Kubernetes.
pub trait Host: Send + Sync + 'static {
    /// Every object, and what happens.
    fn board(&self) -> &Arc<Board>;
    /// Whether it can serve; why not, when it cannot.
    fn ready(&self) -> Result<(), String>;
    /// Takes manifests, YAML or JSON: all of them or none. With `dry_run` it only says what would come of it.
    fn apply(&self, by: Caller, manifests: String, dry_run: bool) -> Answer<Vec<Applied>>;
    /// Removes an object. A gang is stopped first, and forgotten; one that is over is just forgotten.
    fn remove(&self, by: Caller, kind: Kind, name: String) -> Answer<()>;
    /// Changes a gang, and answers with it.
    fn change(&self, by: Caller, gang: GangName, change: Change) -> Answer<Arc<Value>>;
    /// Why a gang waits, when it starts, what would start it now.
    fn why(&self, gang: GangName) -> Answer<Why>;
    /// What would become of these gangs if they were submitted now.
    fn what_if(&self, by: Caller, manifests: String) -> Answer<Vec<WhatIf>>;
    /// Who has used how much.
    fn usage(&self, asked: UsageRequest) -> Answer<Vec<Usage>>;
    /// What members have printed.
    fn logs(&self, gang: GangName, which: WhichLogs) -> Answer<Logs>;
    /// Counts and gauges of its own, in the text format of Prometheus.
    fn metrics(&self) -> String;
}

/// Why something was not done.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refused {
    /// There is no such thing.
    #[error("{0}")]
    NotFound(String),
    /// It does not fit what is there.
    #[error("{0}")]
    Conflict(String),
    /// Whoever asks may not do this.
    #[error("{0}")]
    Forbidden(String),
    /// What was asked makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// Manifests that are wrong, and where.
    #[error("{} findings in the manifests", .0.len())]
    Findings(Vec<Finding>),
    /// The key of the request was used for another one.
    #[error("{0}")]
    KeyReused(String),
    /// This host cannot do such a thing at all.
    #[error("{0}")]
    Unsupported(String),
    /// It cannot be done now, and may be later.
    #[error("{0}")]
    Unavailable(String),
}

/// A gang's namespace and name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct GangName {
    /// Its namespace.
    pub namespace: String,
    /// Its name there.
    pub name: String,
}

impl std::fmt::Display for GangName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// What became of one object of the manifests.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Applied {
    /// Its kind, as it is kept: a Job is a Gang.
    pub kind: Kind,
    /// Its name.
    pub name: Arc<str>,
    /// What was done.
    pub effect: AppliedEffect,
    /// What its owner should know, such as that an image is not pulled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// What applying an object did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AppliedEffect")]
pub enum AppliedEffect {
    /// It is new.
    Created,
    /// It is new, in the place of one that was over. What that one printed is kept.
    Replaced,
    /// It was there and has changed.
    Changed,
    /// It was there, and like this.
    Unchanged,
}

/// A change of one gang.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Nobody wants it any more. Its record stays.
    Cancel,
    /// It does not start until it is released; one that runs goes on.
    Hold,
    /// It may start.
    Release,
    /// A role has other bounds.
    Scale {
        /// The role; may be left out where there is only one.
        role: Option<String>,
        /// At least so many.
        min: Option<u32>,
        /// At most so many.
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

/// What would become of a gang.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WhatIf {
    /// The gang.
    pub name: String,
    /// When it would start; nothing when that cannot be said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starts: Option<Stamp>,
    /// Nodes that would be bought for it.
    pub nodes: u32,
    /// What they cost an hour.
    pub hourly: f64,
    /// What its run costs at these prices, if it says how long it takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// In sentences.
    pub lines: Vec<String>,
}

/// What usage is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UsageRequest {
    /// From here.
    pub from: Time,
    /// To here.
    pub to: Time,
    /// Summed by what.
    pub by: UsageBy,
}

/// What usage is summed by.
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

/// What somebody has used.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// The queue, user, gang or day.
    pub key: String,
    /// Gangs that ran.
    pub gangs: u64,
    /// Times a member ran.
    pub runs: u64,
    /// GPU-seconds held.
    pub gpu_seconds: f64,
    /// CPU-seconds held.
    pub cpu_seconds: f64,
    /// Seconds waited, over all gangs.
    pub waited_seconds: f64,
    /// What the nodes under them cost in that time.
    pub cost: f64,
}

/// Which logs are wanted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WhichLogs {
    /// Of one member only, by its rank.
    pub member: Option<u32>,
    /// Of an earlier attempt; the latest when absent.
    pub attempt: Option<u32>,
    /// Of this run, also of a gang before it that had its name.
    pub run: Option<u64>,
    /// So many of the last lines of each member; all when absent.
    pub tail: Option<usize>,
    /// What comes is wanted as well, until the gang is over.
    pub follow: bool,
}

/// Logs, part by part. Whoever does not read any more just lets go of it.
pub type Logs = mpsc::Receiver<LogPart>;

/// Whole lines that a member has printed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogPart {
    /// The member's rank.
    pub member: u32,
    /// Its role.
    pub role: Arc<str>,
    /// Whether it was printed as an error.
    pub stderr: bool,
    /// One or more lines, each with its end.
    pub text: String,
}
