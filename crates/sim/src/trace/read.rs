//! Reads the jobs of a trace in any format.

use std::path::Path;
use std::str::FromStr;

use crate::trace::error::TraceError;
use crate::trace::skipped::Skip;

use crate::job::Job;
use crate::trace::formats::{job_log, openb, swf, table};

/// The formats a trace can be written in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TraceFormat {
    /// The Standard Workload Format of the Parallel Workloads Archive, see [`swf`].
    Swf,
    /// A table with named columns, see [`table`].
    Csv,
    /// A GPU cluster's log of jobs, see [`job_log`].
    Log,
    /// A list of pods, see [`openb`].
    Pods,
}

impl FromStr for TraceFormat {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Self, TraceError> {
        match text {
            "swf" => Ok(Self::Swf),
            "csv" => Ok(Self::Csv),
            "log" => Ok(Self::Log),
            "pods" => Ok(Self::Pods),
            _ => Err(TraceError::UnknownFormat(text.to_owned())),
        }
    }
}

/// The jobs of a trace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Replay {
    /// Its jobs by submit time.
    pub jobs: Vec<Job>,
    /// Records that were skipped.
    pub skipped: Vec<Skip>,
}

/// The jobs of a trace, by submit time, and what was skipped. In a log, a job of more GPUs than a node has is a
/// gang of such nodes.
pub fn read_jobs(
    path: &Path,
    format: TraceFormat,
    gpus_per_node: u16,
) -> Result<Replay, TraceError> {
    match format {
        TraceFormat::Swf => {
            let swf = swf::read(path)?;
            Ok(Replay { jobs: swf.jobs(&swf::SwfOptions::default()), skipped: swf.skipped })
        }
        TraceFormat::Csv => Ok(Replay { jobs: table::read(path)?, skipped: Vec::new() }),
        TraceFormat::Log => job_log::read(path, gpus_per_node),
        TraceFormat::Pods => openb::jobs(path, openb::read_pods(path)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_format_is_refused_with_the_known_ones() {
        assert_eq!("swf".parse::<TraceFormat>().unwrap(), TraceFormat::Swf);
        let refusal = "yaml".parse::<TraceFormat>().unwrap_err().to_string();
        assert_eq!(refusal, "`yaml` is not a trace format: known are swf, csv, log, pods");
    }

    #[test]
    fn missing_file_is_named() {
        let refusal =
            read_jobs(Path::new("/nowhere/log.swf"), TraceFormat::Swf, 8).unwrap_err().to_string();
        assert!(refusal.starts_with("/nowhere/log.swf: cannot be opened: "), "{refusal}");
    }
}
