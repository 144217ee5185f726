//! Pools between gangs: free nodes ahead of need, and releasing those that are not needed.

mod consolidation;
mod idle_nodes;
mod release;
mod schedules;
mod stopped_nodes;
mod targets;
