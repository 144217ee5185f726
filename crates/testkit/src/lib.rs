//! What tests of every host share: builders for specs, and checkers for the promises.
//!
//! The checkers never look into the World or the planner. They keep their own books from [`Fact`]s, as an
//! auditor would, so that the thing they check cannot talk them into its own mistakes.
//!
//! [`Fact`]: muster_core::Fact

pub mod build;
pub mod promises;

pub use promises::{Ledger, Promise, Violation};
