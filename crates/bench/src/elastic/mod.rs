//! `cargo xtask bench elastic`: elastic gangs beside the same gangs that are rigid.
//!
//! Read in this order: the command, the jobs as rigid and as elastic gangs, the cluster they run on, and the results.

mod measure;

mod jobs;

mod cluster;

mod results;

pub(crate) use measure::{Args, run};
