//! The processes of a cluster: their ports and logs, and the cleanup after them.

pub(super) mod component;
pub(super) mod ports;

pub(super) mod reaper;
pub(super) mod running;
