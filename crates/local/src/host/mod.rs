//! The handle of a running control plane, which implements the server's `Host`, and its restarts while the disk is full.

pub(crate) mod local;
pub(crate) mod restart;
