//! The planner's cases and properties. A case is a text; see [`dsl`] for how it is written.

mod architecture;
mod dsl;

mod placing;

mod constraints;
mod gpus;
mod roles;
mod topology;

mod avoidance;
mod failures;
mod limits;
mod provisioning;

mod impossible;
mod queueing;
mod running;
mod supply;

mod oracle;
mod overlay;
mod random_runs;
mod repeats;
mod seeds;
mod story;
mod tmp_runner;
