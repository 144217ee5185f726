//! The simulator from outside: scenarios, faults, planted bugs, recordings.

mod faults;
mod replay;
mod scenarios;
mod stage;
mod tenants;
