//! The simulator from outside: scenarios, faults, planted bugs, recordings.

mod accounting;
mod ahead;
mod disruption;
mod faults;
mod provisioning;
mod replay;
mod scenarios;
mod shares;
mod silence;
mod stage;
mod starvation;
mod tenants;
mod told;
