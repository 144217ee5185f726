//! `kind: Order`: the claims and placements that were decided for one gang, and their status.

pub(crate) mod spec;
pub(crate) mod status;
