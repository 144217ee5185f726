//! Reads each kind of Muster's own manifests into the types of the planner: one module per kind.
//!
//! Reading is strict: an unknown field, a wrong type or a value out of range is a finding with its line.

pub(crate) mod topology;

pub(crate) mod queue;

pub(crate) mod node;
pub(crate) mod pool;

pub(crate) mod gang;

pub(crate) mod amounts;
