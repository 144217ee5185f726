//! Placing gangs on nodes that are free: all members or none, where constraints, GPUs and topology allow.

mod constraints;
mod fragmentation;
mod gpus;
mod roles;
mod spread;
mod topology;
mod whole_gang;
