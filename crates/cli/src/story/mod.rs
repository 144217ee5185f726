//! The story of a run, told as it happens.

mod timeline;

mod ask;
mod changes;
mod orders;

mod board;
mod compare;

pub(crate) use board::REDRAW;
pub(crate) use compare::{Comparison, compare};
pub(crate) use timeline::Timeline;
