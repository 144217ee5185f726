//! The meter: where bought time and money went, and how gangs fared, from facts alone.
//!
//! Muster, those it is compared with, and any later host are measured by this one reader of facts. What became
//! of each *job* is not here: gangs are all that facts know of (`accounts` links them to jobs).
//!
//! Read in this order: what a bought machine can be at an instant, one machine, all of them with their bill, the
//! orders that gather them, the gangs that use them and how they are disturbed, and which fact changes what.

mod state;

mod fleet;
mod machine;

mod orders;

mod disruptions;
mod gangs;

mod facts;

#[cfg(test)]
mod tests;

pub use disruptions::Disruptions;
pub use facts::Meter;
pub use fleet::Tally;
pub use gangs::{Hits, Start, Work};
pub use orders::{Cause, RolledBack};
pub use state::{ByState, State};

pub(crate) use orders::failure_name;
