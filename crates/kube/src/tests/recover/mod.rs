//! Restarts, changes of leader, and panics.

pub(crate) mod restart;

pub(crate) mod previous_leader;
pub(crate) mod stale_placement;

pub(crate) mod panics;
