//! What may be done to a gang that runs, and what it loses by it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::values::duration::{Duration, DurationAboveZero};

/// What may be done to a gang that runs, and to others for its sake.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Disruption {
    /// Whether it may be stopped for others' sake.
    #[serde(default = "yes")]
    pub preemptible: bool,
    /// Whether others of lower priority may be stopped, or made smaller, for its sake. What its queue lent comes back all the
    /// same.
    #[serde(default = "yes")]
    pub preempts: bool,
    /// Not before a run has lasted for so long. No default: beside `preemptible: false` it would mean nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_runtime: Option<Duration>,
    /// From being told to stop to being stopped; none when nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace: Option<Duration>,
    /// How it saves its work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Checkpoint>,
}

/// How work is saved: on a signal, by itself, or both.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "has(self.signal) || has(self.every)", "message": "must say signal, every or both"},
]))]
pub struct Checkpoint {
    /// On this signal it saves all it has, within its grace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<Signal>,
    /// How often it saves by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<DurationAboveZero>,
    /// From a new start to where it was; none when nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart: Option<Duration>,
}

/// Signals that a process can catch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Signal {
    SigUsr1,
    SigUsr2,
    SigTerm,
    SigInt,
    SigHup,
    SigQuit,
    SigAlrm,
    SigCont,
    SigWinch,
}

fn yes() -> bool {
    true
}
