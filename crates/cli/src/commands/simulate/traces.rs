//! Jobs from traces, whatever they are written in.

use std::path::Path;

use muster_sim::Setup;
use muster_sim::trace::swf::{self, Estimates, SwfOptions};
use muster_sim::trace::{Replay, Skip, TraceError, TraceFormat, read_jobs, recognise};

use crate::commands::simulate::command::{Args, WhoseEstimates};
use crate::commands::simulate::supply;
use crate::exit::Misused;
use crate::figures::count;

/// Adds the jobs of every trace that was given, and where a trace says so the machine it ran on.
pub(crate) fn add(args: &Args, setup: &mut Setup) -> Result<(), Misused> {
    let mut files = Vec::new();
    if let Some(file) = &args.trace {
        files.push((file, recognise(file).map_err(|error| Misused(error.to_string()))?));
    }
    files.extend(args.swf.iter().map(|file| (file, TraceFormat::Swf)));
    files.extend(args.csv.iter().map(|file| (file, TraceFormat::Csv)));
    if args.procs.is_some() && files.iter().all(|(_, format)| *format != TraceFormat::Swf) {
        let why = "--procs is for a trace in Standard Workload Format, and none is given";
        return Err(Misused(why.to_owned()));
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
) -> Result<(), Misused> {
    let refused = |error: TraceError| Misused(error.to_string());
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

fn no_machine(file: &Path) -> Misused {
    let file = file.display();
    Misused(format!(
        "{file}: the header names no MaxProcs: say with --procs how large the machine is, \
         or give --nodes or manifests"
    ))
}

fn warn_of_skipped(file: &Path, skipped: &[Skip]) {
    let Some(Skip { line, reason }) = skipped.first() else { return };
    let (skipped, file) = (count(skipped.len(), "record"), file.display());
    eprintln!("warning: {file}:{line}: {skipped} skipped, this the first: {reason}");
}
