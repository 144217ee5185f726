//! Pod-level rules in whole cycles: preferred inter-pod terms, static volumes and attach limits.

pub(crate) mod preferred;
pub(crate) mod volumes;
