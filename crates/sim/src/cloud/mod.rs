//! Simulated clouds: machines that boot, stock out, fail and are reclaimed.
//!
//! Outages are drawn by time and machines by number, each from random numbers of its own (`random_streams`), so that two
//! strategies on one seed meet the same cloud whatever they request and when.
//!
//! Read in this order: the model, the providers, one machine, stock and its outages, failures under load, and restoring a
//! cloud after a restart.

mod model;

mod providers;

mod machine;

mod availability;
mod correlated_outages;
mod stock;
mod supply;

mod gang_failures;

mod restore;

mod random_streams;

#[cfg(test)]
mod tests;

pub use availability::Availability;
pub use gang_failures::GangFailures;
pub use machine::Stage;
pub use model::{CloudModel, Scripted, StockModel};
pub use providers::Cloud;
pub use restore::Remembered;

pub(crate) use machine::Machine;
