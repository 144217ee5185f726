//! Starts, stops and resizes gangs: gates, suspended Jobs, preemption, elastic sizes.

mod elastic_gangs;
mod node_usage;
mod owner_resize;
mod preemption;
mod scheduling_gates;
mod suspended_jobs;
