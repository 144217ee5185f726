//! Gangs of lower priority are preempted, whole, for one that then starts.

mod least_cost;
mod not_worth_it;
mod placement;
mod queues;
mod victims_leaving;
mod whole_gangs;
