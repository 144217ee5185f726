//! Starts again without losing anything: after a restart, a change of leader, or a panic.
//!
//! Reading order: [`rebuild`] builds the World from observed objects. It uses [`timestamps`] (ages by the API server's clock),
//! [`offering_health`] (failures that the previous leader wrote into statuses) and [`learned`] (usage, run times and demand,
//! kept in ConfigMaps). [`panic`] catches a panic and has the World rebuilt without the object that caused it, which
//! [`quarantine`] leaves out. [`injected_faults`] makes tests panic.
//!
//! Not here: the lease (`lease`), and recovery of ProvisioningRequests, which is in the two folders of `provision` that handle
//! them.

pub(crate) mod rebuild;

pub(crate) mod learned;
pub(crate) mod offering_health;
pub(crate) mod timestamps;

#[cfg(any(test, feature = "cluster"))]
pub(crate) mod injected_faults;
pub(crate) mod panic;
pub(crate) mod quarantine;
