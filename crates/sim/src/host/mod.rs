//! The host in virtual time: takes events one by one, applies them to the World, runs the planner, and executes its
//! actions.
//!
//! Read in this order: the simulation and what it starts from, its events, the planning cycle, executing actions, the
//! gangs and the cluster that they run on, and crashes and planted bugs.

mod options;
mod setup;
mod sim;

mod events;

mod cycle;
mod pyss;

mod actions;

mod cluster;
mod gangs;

mod crash;
mod planted_bugs;

#[cfg(test)]
mod tests;

pub use cluster::Outage;
pub use options::{SimOptions, Step};
pub use setup::Setup;
pub use sim::{Sim, Watcher};

pub(crate) use events::SimEvent;
