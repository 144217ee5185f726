//! Recorded workloads: which gangs arrived when, and how long they ran.
//!
//! Files are streamed line by line, gzipped or not. YAML workloads are manifests and are read by `muster-api`,
//! not here.

mod cell;
mod error;
mod lines;
mod open;

pub mod swf;
pub mod table;

use std::path::Path;
use std::str::FromStr;

pub use cell::CellError;
pub use error::TraceError;
pub use open::open;

use crate::job::Job;

/// The formats a trace can be written in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TraceFormat {
    /// The Standard Workload Format of the Parallel Workloads Archive, see [`swf`].
    Swf,
    /// A table with named columns, see [`table`].
    Csv,
}

impl FromStr for TraceFormat {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Self, TraceError> {
        match text {
            "swf" => Ok(Self::Swf),
            "csv" => Ok(Self::Csv),
            _ => Err(TraceError::UnknownFormat(text.to_owned())),
        }
    }
}

/// The jobs of a trace, by submit time. Use [`swf::read`] to see what was skipped and why.
pub fn read_jobs(path: &Path, format: TraceFormat) -> Result<Vec<Job>, TraceError> {
    match format {
        TraceFormat::Swf => Ok(swf::read(path)?.jobs(&swf::SwfOptions::default())),
        TraceFormat::Csv => table::read(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_format_is_refused_with_the_known_ones() {
        assert_eq!("swf".parse::<TraceFormat>().unwrap(), TraceFormat::Swf);
        let refusal = "yaml".parse::<TraceFormat>().unwrap_err().to_string();
        assert_eq!(refusal, "`yaml` is not a trace format: known are swf, csv");
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let refusal =
            read_jobs(Path::new("/nowhere/log.swf"), TraceFormat::Swf).unwrap_err().to_string();
        assert!(refusal.starts_with("/nowhere/log.swf: cannot be opened: "), "{refusal}");
    }
}
