//! The socket between the control plane and a keeper: orders one way, records the other.

pub(crate) mod client;
pub(crate) mod server;
