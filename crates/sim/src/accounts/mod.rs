//! Accounts: where purchased time and money went, how gangs fared, and the outcome of every job; from facts alone.
//!
//! Muster, the provisioners it is compared with, and any other host are measured by this one reader of facts. Facts name
//! gangs only; `job_outcomes` links them to jobs.
//!
//! Read in this order: the states of a purchased machine, one machine, all machines with their bill, the orders that
//! assemble them, the gangs that use them and their disruptions, the meter that updates all of these by fact, and the
//! outcomes of jobs.

mod state;

mod fleet;
mod machine;

mod orders;

mod disruptions;
mod gangs;

mod meter;

mod job_outcomes;

#[cfg(test)]
mod tests;

pub use disruptions::Disruptions;
pub use fleet::Tally;
pub use gangs::{Hits, Start, Work};
pub use job_outcomes::{Accounts, Outcome};
pub use meter::Meter;
pub use orders::{Cause, RolledBack};
pub use state::{ByState, State};

pub(crate) use orders::failure_name;
