//! Preempting: by priority, to reclaim guarantees, for time slices, by moving and by shrinking; and what it costs.

mod cost_compared;
mod moving;
mod never_preempts;
mod priority;
mod reclaim;
mod shrink;
mod time_slice;
