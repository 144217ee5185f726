//! The planner's cases and properties. A case is a text; see [`dsl`] for how it is written.

mod architecture;
mod dsl;

mod placement;
mod queueing;

mod preemption;
mod provisioning;

mod growth;
mod repair;
mod supply;

mod explain;

mod properties;
mod regressions;
