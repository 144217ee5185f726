pub(crate) mod panics;
pub(crate) mod previous_leader;
pub(crate) mod restart;
pub(crate) mod stale_placement;
