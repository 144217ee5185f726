//! `cargo xtask bench supply`: provisioning nodes for recorded gang jobs, by Muster and by other strategies.
//!
//! Read in this order: the command, the offerings and their clouds, the jobs, the strategies, and the results.

mod measure;

pub(crate) mod model;

mod jobs;

pub(crate) mod strategies;

mod results;

pub(crate) use measure::{Args, default_anchors, read, run, traces};
pub(crate) use results::round;
