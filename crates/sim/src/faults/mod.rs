//! Random worlds with random faults, each from one seed: first a storm of faults, then none.
//!
//! While faults last, no promise may be broken (safety). Once they stop, every gang that can run must run
//! and end, and every purchased node must be released (liveness).
//!
//! Read in this order: running a seed, drawing its scenario, what each part of a scenario draws, and planted bugs.

mod run;

mod scenario;

mod absurd_specs;
mod bad_input;
mod disruption;
mod node_types;
mod owner_resizes;
mod proactive;
mod tenants;

mod isolation;

mod sabotage;

pub use run::{Verified, run_seed, run_seed_under};
pub use sabotage::Sabotage;
pub use scenario::{Drawn, draw};

pub(crate) use bad_input::BadInput;
