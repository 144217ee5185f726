//! `muster simulate`, `muster rehearse` and `muster replay`.

mod rehearse;
mod simulate;

mod start_time;
mod trace_formats;
mod traces;

mod packing;
mod recording;
mod report;
