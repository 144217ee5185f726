//! The Kubernetes host: a gang scheduler and provisioner on a real API server.
//!
//! Read in this order: `run` acquires the lease, lists everything and loops; `cycle` is one cycle, and the table of
//! contents of the crate. `api` has the client: watches in, writes out. `objects` are the fields that are read, and `cache`
//! holds every observed object. `gang` builds gangs from objects, `constraints` translates pod-level rules for the planner,
//! `schedule` drives each gang through its phases, `provision` turns Orders into nodes, `effects` orders the writes and
//! returns their outcomes, and `status` reports to users. `recover` rebuilds the World from objects after a restart.
//!
//! Architecture invariants: all state lives in Kubernetes objects, and everything in memory can be lost at any
//! instruction. Intent is written before it is acted on: an Order before its NodeClaims or its requests to an
//! autoscaler, the owner of a node before the node is used, a placement before its bindings. Nothing is decided before
//! everything was listed once, and only the leader writes.

mod config;
mod run;

mod cycle;
mod host;

pub mod api;
pub mod objects;

mod cache;
mod gang;

mod constraints;
mod schedule;

pub mod provision;
mod status;

mod effects;
mod recover;

mod clock;
pub mod features;
pub mod lease;
pub mod why;

#[cfg(test)]
mod tests;

pub use crate::config::{Config, MAX_GANG_MEMBERS, MAX_GANGS_PER_NAMESPACE};
pub use crate::run::{HostError, run};

pub use crate::api::error_chain::with_causes;
pub use crate::api::watch::fuzzing;
pub use crate::api::watch::health::{KindHealth, WatchHealth};
pub use crate::api::watch::watches::Bounds;
pub use crate::objects::fields::kept_of;
#[cfg(any(test, feature = "cluster"))]
pub use crate::recover::injected_faults::Fault;
