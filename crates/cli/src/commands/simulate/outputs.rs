//! Writes the results of a simulation: tables, JSON lines, start times, recordings, reports.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use comfy_table::{CellAlignment, Table, presets};
use indicatif::ProgressBar;
use muster_core::Fact;
use muster_sim::record::Recorder;
use muster_sim::report::Gather;
use muster_sim::{Setup, Sim, Summary};

use crate::commands::simulate::command::Args;
use crate::commands::simulate::rows::GROUPS;
use crate::exit::UsageError;
use crate::figures::grouped;
use crate::report::Invocation;
use crate::simulation::unfinished::unfinished;
use crate::stdout;

/// Creates an output file. Called before the simulation, so that a misspelt path fails at once and not after an hour.
pub(crate) fn create(file: &Path) -> Result<BufWriter<File>, UsageError> {
    let unusable = |error| UsageError(format!("{}: cannot be written: {error}", file.display()));
    File::create(file).map(BufWriter::new).map_err(unusable)
}

/// A recording into a file.
pub(crate) fn recorder(file: &Path) -> Result<Recorder, UsageError> {
    Ok(Recorder::new(Box::new(create(file)?)))
}

/// A report into a file, to which every run of the setup is added.
pub(crate) fn report(file: &Path, setup: &Setup) -> Result<(BufWriter<File>, Gather), UsageError> {
    Ok((create(file)?, Gather::new(setup)))
}

/// The invocation of the command, for the report.
pub(crate) fn invocation(args: &Args) -> Invocation {
    let files = args.files.iter().chain(&args.trace).chain(&args.swf).chain(&args.csv);
    let name = |file: &PathBuf| file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut inputs: Vec<String> = files.map(name).collect();
    inputs.extend(args.workload.map(|preset| format!("synthetic workload {preset}")));
    Invocation::new(inputs, args.seed)
}

/// `id,start` for every job that started; the id of a trace's job is the one the trace gave it.
pub(crate) fn starts(mut out: impl Write, sim: &Sim) -> std::io::Result<()> {
    for (job, outcome) in sim.jobs().iter().zip(sim.accounts().outcomes()) {
        if let Some(started) = outcome.started {
            let id = cell(job.gang.name.strip_prefix("job-").unwrap_or(&job.gang.name));
            let (secs, ms) = (started.0 / 1_000, started.0 % 1_000);
            if ms == 0 {
                writeln!(out, "{id},{secs}")?;
            } else {
                writeln!(out, "{id},{secs}.{ms:03}")?;
            }
        }
    }
    out.flush()
}

/// A name as a cell of a table; one with a comma or a quote in it is quoted.
fn cell(name: &str) -> Cow<'_, str> {
    if name.contains([',', '"']) {
        Cow::Owned(format!("\"{}\"", name.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(name)
    }
}

/// The number of unfinished or refused jobs that are listed.
const NAMED: usize = 3;

/// Warns of refused jobs, with the reason.
pub(crate) fn warn_of_refused(sim: &mut Sim, bar: &ProgressBar) {
    let (bar, mut named) = (bar.clone(), 0);
    sim.watch(Box::new(move |_, _, fact| {
        if let Fact::GangRefused { name, why } = fact
            && named < NAMED
        {
            named += 1;
            bar.suspend(|| eprintln!("warning: {name} is refused: {why}"));
        }
    }));
}

/// Warns of unfinished jobs, with the reason; the table shows only their number.
pub(crate) fn warn_of_unfinished(sim: &Sim, policy: &str) {
    let left = unfinished(sim);
    if left.is_empty() {
        return;
    }
    let (number, all) = (grouped(left.len() as u64), grouped(sim.jobs().len() as u64));
    eprintln!("warning: {policy}: {number} of {all} jobs unfinished:");
    for line in left.iter().take(NAMED) {
        eprintln!("  {line}");
    }
    if left.len() > NAMED {
        eprintln!("  ... and {} more", left.len() - NAMED);
    }
}

/// Prints all policies as columns of a table, or a JSON object each.
pub(crate) fn print(summaries: &[Summary], json: bool) -> anyhow::Result<()> {
    if json {
        for summary in summaries {
            stdout::line(serde_json::to_string(summary)?);
        }
        return Ok(());
    }
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(
        std::iter::once("").chain(summaries.iter().map(|summary| summary.policy.as_str())),
    );
    for group in GROUPS.iter().filter(|group| (group.applies)(summaries)) {
        table.add_row([group.title]);
        for (name, show) in group.rows {
            table.add_row(std::iter::once(format!("  {name}")).chain(summaries.iter().map(show)));
        }
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    stdout::line(table);
    Ok(())
}
