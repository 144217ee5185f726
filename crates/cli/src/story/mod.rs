//! The story of a run, told as it happens.

mod compare;
mod timeline;

pub(crate) use compare::{Comparison, compare};
pub(crate) use timeline::Timeline;
