//! Gangs leave nodes under notice in time; nodes that failed too often are quarantined.

mod leaving;
mod quarantine;
