//! Limits on bodies, requests, streams and connections: the bounds, and the counters that enforce them.

pub(crate) mod bounds;

pub(crate) mod concurrency;
pub(crate) mod connections;
