//! The promises of the design, each checked over books that are kept from facts alone.

mod promise;

mod books;
mod ledger;

mod gangs;
mod nodes;
mod queue;
mod recovery;

#[cfg(test)]
mod fixture;

pub use ledger::{HostReport, Ledger, Terms};
pub use promise::{Promise, Violation};
pub use queue::excused;
