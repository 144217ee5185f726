//! One file for each promise that the observer checks.
//!
//! `planted_violations` proves each check with a history that breaks the promise.

mod deleted_gangs;
mod needless_evictions;
mod node_capacity;
mod node_readiness;
mod partial_gangs;
mod planted_violations;
mod pool_limits;
mod queue_limits;
mod unfilled_gangs;
mod unused_claims;

pub(crate) use deleted_gangs::DeletedGangs;
pub(crate) use needless_evictions::NeedlessEvictions;
pub(crate) use node_capacity::NodeCapacity;
pub(crate) use node_readiness::{NodeReadiness, ready_since};
pub(crate) use partial_gangs::PartialGangs;
pub(crate) use pool_limits::PoolLimits;
pub(crate) use queue_limits::QueueLimits;
pub(crate) use unfilled_gangs::UnfilledGangs;
pub(crate) use unused_claims::UnusedClaims;
