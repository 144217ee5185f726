//! Promises about nodes: claims and orders, idle nodes, and nodes that failed or leave.

pub(super) mod claims;

pub(super) mod idle;
pub(super) mod quarantine;
