//! The timeline of a run: a line per event as it happens and, on a terminal, the current status of every gang below.

mod events;

mod gang_changes;
mod gang_request;
mod orders;

mod compare;
mod status_lines;

pub(crate) use compare::{Comparison, compare};
pub(crate) use events::Timeline;
pub(crate) use status_lines::REDRAW;
