//! The Kubernetes host: a gang scheduler and provisioner on a real API server.
//!
//! Read in this order: `objects` are the parts of Kubernetes' objects that matter here; `watch` brings every change
//! of them; `mirror` keeps what is known; `intake` makes gangs of pods; `host` holds the World against all that, asks
//! the planner and hands out what it decides; `hands` do it; `lease` says who may.
//!
//! Architecture invariants: all state lives in Kubernetes objects, and whatever is in memory can be lost at any
//! instruction. Intent is written before it is acted on: an Order before its NodeClaims or its requests to an
//! autoscaler, whose a node is before it is used, a placement before its bindings. Nothing is decided before everything was listed once, and nothing is written by who is not the leader.

mod autoscaler;
pub mod boot_clock;
mod cause;
mod definitions;
mod discover;
pub mod features;
mod fence;
pub mod hands;
mod host;
mod intake;
pub mod karpenter;
pub mod leadership;
pub mod lease;
mod mirror;
pub mod objects;
pub mod pulse;
mod shelf;
mod watch;
pub mod why;

pub use cause::with_causes;
#[cfg(any(test, feature = "cluster"))]
pub use host::Fault;
pub use host::{Config, HostError, MAX_GANG_MEMBERS, MAX_GANGS_PER_NAMESPACE, run};
pub use intake::kept_of;
pub use watch::{Bounds, KindHealth, WatchHealth, fuzzing};
