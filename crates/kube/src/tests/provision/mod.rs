//! Bought nodes.

pub(crate) mod nodes;
