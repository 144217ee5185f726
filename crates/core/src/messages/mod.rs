//! The messages between hosts and planner: events in, plans and verdicts out, facts for the record.

pub mod event;

pub mod plan;
pub mod verdict;

pub mod fact;
