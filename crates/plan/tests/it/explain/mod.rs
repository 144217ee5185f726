//! Verdicts that explain why a gang cannot run.

mod infeasible;
