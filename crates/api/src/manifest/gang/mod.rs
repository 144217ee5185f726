//! Reads `kind: Gang`: the spec, its roles, and their constraints, disruption and scaling.

pub(crate) mod gang_spec;
pub(crate) mod role;

pub(crate) mod constraints;
mod disruption;
mod scaling;
