//! The Kubernetes host: a gang scheduler and provisioner on a real API server.
//!
//! Read in this order: `objects` are the parts of Kubernetes' objects that matter here; `watch` brings every change
//! of them; `mirror` keeps what is known; `intake` makes gangs of pods; `host` holds the World against all that, asks
//! the planner and hands out what it decides; `hands` do it; `lease` says who may.
//!
//! Architecture invariants: all state lives in Kubernetes objects, and whatever is in memory can be lost at any
//! instruction. Intent is written before it is acted on: an Order before its NodeClaims or its requests to an
//! autoscaler, whose a node is before it is used, a placement before its bindings. Nothing is decided before everything was listed once, and nothing is written by who is not the leader.

pub mod api;
mod cache;
mod clock;
mod constraints;
mod cycle;
mod effects;
pub mod features;
mod gang;
mod host;
pub mod lease;
pub mod objects;
pub mod provision;
mod recover;
mod run;
mod schedule;
mod status;
#[cfg(test)]
mod tests;
pub mod why;

pub use crate::api::error_chain::with_causes;
#[cfg(any(test, feature = "cluster"))]
pub use crate::recover::injected_faults::Fault;
pub use crate::run::{Config, HostError, MAX_GANG_MEMBERS, MAX_GANGS_PER_NAMESPACE, run};

pub use crate::api::watch::fuzzing;
pub use crate::api::watch::health::{KindHealth, WatchHealth};
pub use crate::api::watch::watches::Bounds;
pub use crate::objects::fields::kept_of;
