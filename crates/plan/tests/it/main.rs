//! The planner's cases and properties. A case is a text; see [`dsl`] for how it is written.

mod dsl;
mod constraints;
mod gpus;
mod placing;
mod roles;
mod topology;
