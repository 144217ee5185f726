//! Verdicts that explain.

mod infeasible;
