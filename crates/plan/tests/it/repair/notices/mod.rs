//! Nodes that are about to go are left in time; nodes that failed too often are left alone for a while.

mod leaving;
mod quarantine;
