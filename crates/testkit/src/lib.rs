//! Shared by the tests of every host: builders for specs, checkers for the promises, and a real Kubernetes.
//!
//! The checkers never read the World or the planner. They keep their own books from [`Fact`]s, as an auditor would, so
//! that they cannot inherit the mistakes of the code they check.
//!
//! [`Fact`]: muster_core::Fact

pub mod build;
#[cfg(feature = "cluster")]
pub mod cluster;
pub mod promises;
pub mod testbed;

pub use crate::promises::{Ledger, Promise, Violation};
