//! The simulator from outside: scenarios, faults, planted bugs, recordings.

mod accounting;
mod disruption;
mod fact_log;
mod faults;
mod proactive;
mod provisioning;
mod replay;
mod scenarios;
mod shares;
mod starvation;
mod tenants;
mod two_zones;
mod verdicts_off;
