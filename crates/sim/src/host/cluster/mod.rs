//! The cluster that gangs run on: machines of providers, nodes, and the start barrier of ungrouped members.

mod machines;

pub(super) mod nodes;

pub(super) mod barrier;

pub use nodes::Outage;
