//! Simulations of manifests, as `muster rehearse` and `muster simulate` set them up and explain them.

pub(crate) mod setup;
pub(crate) mod start_time;

pub(crate) mod unfinished;
pub(crate) mod why;
