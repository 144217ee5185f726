//! The formats of traces, one module each.

pub mod availability;
pub mod job_log;
pub mod openb;
pub mod swf;
pub mod table;
