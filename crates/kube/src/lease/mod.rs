//! Leader election: a Lease decides which replica acts, and everything that writes asks before each request.

pub(crate) mod boot_clock;
pub(crate) mod election;
pub(crate) mod heartbeat;
pub(crate) mod leadership;

pub use election::{LeaseConfig, STALL, unique};
