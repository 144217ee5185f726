//! How a running gang may be disrupted, and what a disruption costs it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crd::values::duration::{Duration, DurationAboveZero};

/// How the running gang may be disrupted, and whether it may preempt others.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Disruption {
    /// Whether the gang may be preempted.
    #[serde(default = "yes")]
    pub preemptible: bool,
    /// Whether gangs of lower priority may be preempted, or shrunk, for this gang. What its queue has lent is reclaimed
    /// in any case.
    #[serde(default = "yes")]
    pub preempts: bool,
    /// The gang is not preempted before a run has lasted this long. There is no default: beside `preemptible: false` it
    /// would have no effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_runtime: Option<Duration>,
    /// Time from the request to stop until the gang is stopped; none by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace: Option<Duration>,
    /// How the gang saves its work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Checkpoint>,
}

/// How work is saved: on a signal, periodically, or both.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "has(self.signal) || has(self.every)", "message": "must say signal, every or both"},
]))]
pub struct Checkpoint {
    /// The signal on which the gang saves all its work, within its grace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<Signal>,
    /// How often the gang saves its work by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<DurationAboveZero>,
    /// Time from a restart until the gang has reached its saved state again; none by default.
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
