//! What tests of every host share: builders for specs, checkers for the promises, and a real Kubernetes.
//!
//! The checkers never look into the World or the planner. They keep their own books from [`Fact`]s, as an
//! auditor would, so that the thing they check cannot talk them into its own mistakes.
//!
//! [`Fact`]: muster_core::Fact

pub mod build;
#[cfg(feature = "cluster")]
pub mod cluster;
pub mod promises;
pub mod testbed;

pub use crate::promises::{Ledger, Promise, Violation};
