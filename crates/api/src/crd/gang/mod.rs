//! `kind: Gang`: its spec (roles, constraints, disruption) and its status (placement, conditions).

pub(crate) mod spec;

pub(crate) mod role;

pub(crate) mod constraints;
pub(crate) mod disruption;

pub(crate) mod status;

pub(crate) mod placement;

pub(crate) mod conditions;
