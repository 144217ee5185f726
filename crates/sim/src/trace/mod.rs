//! Recorded workloads (which gangs arrived when, and how long they ran) and recorded supply (nodes, and how many machines
//! were available).
//!
//! Files are streamed line by line, gzipped or not. YAML workloads are manifests and are read by `muster-api`,
//! not here.

mod read;
mod recognise;

mod formats;

mod defaults;
mod error;
mod parse;
mod skipped;

pub use error::TraceError;
pub use formats::{availability, job_log, openb, swf, table};
pub use parse::{CellError, open};
pub use read::{Replay, TraceFormat, read_jobs};
pub use recognise::recognise;
pub use skipped::{Skip, SkipReason};
