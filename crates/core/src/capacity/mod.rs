//! Free capacity: which nodes have room for which members.
//!
//! Nodes with the same class and the same free resources share a state, members with the same needs share a
//! signature, and the index counts the nodes of each state in each topology domain.

pub mod named_nodes;
pub mod signature;
pub mod state;

mod index;
pub use index::*;
