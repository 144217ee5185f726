//! Settle what is under way before anything new is decided: orders, and gangs whose nodes are lost or will be.

mod orders;
mod repair;

pub(crate) use orders::{phase_verdict, retry, settle};
pub(crate) use repair::leave_noticed_nodes;
