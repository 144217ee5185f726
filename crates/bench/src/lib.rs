//! Benchmarks: everything that exists for measurement only.
//!
//! `cargo xtask bench` runs them. The product does not depend on this crate: what a simulation measures about itself is
//! in `muster_sim::accounts`.
//!
//! Read in this order: the command, the benchmarks of the planner, the control planes and the simulator, those of
//! provisioning and elasticity on recorded traces, and the provisioners that Muster is compared with.

mod command;
mod elastic;
mod hits;
mod kube;
mod local;
mod memory;
mod plan;
mod replay;
pub mod rivals;
mod supply;
mod worlds;

pub use crate::command::{Args, run};
