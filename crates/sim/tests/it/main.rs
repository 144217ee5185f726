//! The simulator from outside: scenarios, faults, planted bugs, recordings.

mod faults;
mod replay;
mod rivals;
mod scenarios;
mod shares;
mod silence;
mod stage;
mod starvation;
mod tenants;
