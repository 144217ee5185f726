//! Leader election: a Lease decides which replica writes.
//!
//! `election` acquires and renews the Lease, `leadership` tells all writers until when they may write, `heartbeat` stops
//! the renewal when the decision loop hangs, and `boot_clock` counts through suspend. The connection that refuses to write
//! without the Lease is in `api::leader_client`.

pub(crate) mod election;
pub(crate) mod leadership;

pub(crate) mod heartbeat;

pub(crate) mod boot_clock;

pub use election::{LeaseConfig, STALL_TIMEOUT, unique_identity};
