//! Reads jobs from traces of all supported formats.

use std::path::Path;

use muster_sim::Setup;
use muster_sim::trace::swf::{self, Estimates, SwfOptions};
use muster_sim::trace::{Replay, Skip, TraceError, TraceFormat, read_jobs, recognise};

use crate::commands::simulate::command::{Args, WhoseEstimates};
use crate::commands::simulate::supply;
use crate::exit::UsageError;
use crate::figures::count;

/// Adds the jobs of every given trace, and the machine that the trace ran on if its header describes it.
pub(crate) fn add(args: &Args, setup: &mut Setup) -> Result<(), UsageError> {
    let mut files = Vec::new();
    if let Some(file) = &args.trace {
        files.push((file, recognise(file).map_err(|error| UsageError(error.to_string()))?));
    }
    files.extend(args.swf.iter().map(|file| (file, TraceFormat::Swf)));
    files.extend(args.csv.iter().map(|file| (file, TraceFormat::Csv)));
    if args.procs.is_some() && files.iter().all(|(_, format)| *format != TraceFormat::Swf) {
        let why = "--procs is for a trace in Standard Workload Format, and none is given";
        return Err(UsageError(why.to_owned()));
    }
    for (file, format) in files {
        add_file(args, setup, file, format)?;
    }
    Ok(())
}

fn add_file(
    args: &Args,
    setup: &mut Setup,
    file: &Path,
    format: TraceFormat,
) -> Result<(), UsageError> {
    let refused = |error: TraceError| UsageError(error.to_string());
    let Replay { jobs, skipped } = match format {
        TraceFormat::Swf => {
            let trace = swf::read(file).map_err(refused)?;
            if args.nodes.is_none() && setup.nodes.is_empty() && setup.pools.is_empty() {
                let procs = args.procs.or_else(|| trace.header.max_procs());
                setup.nodes.push(supply::machine(procs.ok_or_else(|| no_machine(file))?));
            }
            let estimates = match args.estimates {
                WhoseEstimates::Requested => Estimates::Requested,
                WhoseEstimates::True => Estimates::True,
            };
            let options = SwfOptions { estimates, ..SwfOptions::default() };
            Replay { jobs: trace.jobs(&options), skipped: trace.skipped }
        }
        format => {
            let mut replay = read_jobs(file, format, args.gpus_per_node).map_err(refused)?;
            if args.estimates == WhoseEstimates::True {
                for job in &mut replay.jobs {
                    job.gang.expected_duration = Some(job.run);
                }
            }
            replay
        }
    };
    warn_of_skipped(file, &skipped);
    setup.jobs.extend(jobs);
    Ok(())
}

fn no_machine(file: &Path) -> UsageError {
    let file = file.display();
    UsageError(format!(
        "{file}: the header names no MaxProcs: give the size of the machine with --procs, \
         or give --nodes or manifests"
    ))
}

fn warn_of_skipped(file: &Path, skipped: &[Skip]) {
    let Some(Skip { line, reason }) = skipped.first() else { return };
    let (skipped, file) = (count(skipped.len(), "record"), file.display());
    eprintln!("warning: {file}:{line}: {skipped} skipped, this the first: {reason}");
}
