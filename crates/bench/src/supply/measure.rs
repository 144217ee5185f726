//! The command: serves each trace with each strategy.

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args as ClapArgs;
use muster_core::time::Span;
use muster_sim::Job;

use crate::supply::results::Line;
use crate::supply::strategies::{self, Measured, Strategy};
use crate::supply::{jobs, model};

/// Serve recorded traces of gang jobs with purchased nodes, by Muster and by three other strategies.
///
/// Every strategy meets the same clouds. One JSON object per trace and strategy.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// Print one JSON object per line instead of a table
    #[arg(long)]
    json: bool,
    /// A trace with the columns job_id,submission_time,duration,num_gpu, gzipped or not; may be repeated
    #[arg(long, value_name = "FILE")]
    trace: Vec<PathBuf>,
    /// Where the ITP traces are, when no trace is named
    #[arg(long, value_name = "DIR", default_value_os_t = default_anchors())]
    anchors: PathBuf,
    /// Only this strategy; may be repeated
    #[arg(long, value_name = "NAME", value_parser = named)]
    strategy: Vec<&'static str>,
    /// Seed of the clouds
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Runs per strategy, each with the next seed: one storm of stock-outs decides no comparison
    #[arg(long, value_name = "N", default_value_t = 5)]
    seeds: u64,
    /// Only jobs submitted within so many days of the first
    #[arg(long, value_name = "N")]
    days: Option<u64>,
    /// How long an unused node is kept, by `muster-reactive` and by the rivals that keep nodes; `muster` has a setting of
    /// its own
    #[arg(long, value_name = "SPAN", default_value_t = model::IDLE_AFTER)]
    idle_after: Span,
    /// A setting of the planner, as in `muster simulate --set`; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
}

/// The default folder of published traces, beside the repository.
pub(crate) fn default_anchors() -> PathBuf {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = crate_dir.ancestors().nth(2).unwrap_or(crate_dir);
    root.join("../shared/anchors/itp")
}

fn named(name: &str) -> Result<&'static str, String> {
    let names: Vec<&str> = strategies::ALL.iter().map(|strategy| strategy.name).collect();
    let found = strategies::ALL.iter().find(|strategy| strategy.name == name);
    found
        .map(|strategy| strategy.name)
        .ok_or_else(|| format!("no such strategy; there are {}", names.join(", ")))
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let Some(traces) = traces(&args.trace, &args.anchors)? else { return Ok(()) };
    if !args.json {
        println!("{}", Line::heading());
    }
    for path in &traces {
        let (name, jobs) = read(path, args.days)?;
        for strategy in strategies::ALL {
            if args.strategy.is_empty() || args.strategy.contains(&strategy.name) {
                let line = measure(args, &name, &strategy, &jobs)?;
                eprintln!("{name}: {} took {:.1} s", line.strategy, line.seconds);
                let text = if args.json { serde_json::to_string(&line)? } else { line.row() };
                println!("{text}");
            }
        }
    }
    Ok(())
}

/// The traces that are named, or else all in the folder; none, with a message, where there are none.
pub(crate) fn traces(named: &[PathBuf], anchors: &Path) -> anyhow::Result<Option<Vec<PathBuf>>> {
    let traces = if named.is_empty() { itp(anchors)? } else { named.to_vec() };
    if traces.is_empty() {
        eprintln!(
            "nothing measured: no ITP traces in {}; say where they are with --anchors, or name a trace with --trace",
            anchors.display()
        );
        return Ok(None);
    }
    Ok(Some(traces))
}

/// A trace's name and its jobs, of the first days or of all.
pub(crate) fn read(path: &Path, days: Option<u64>) -> anyhow::Result<(String, Vec<Job>)> {
    let name = name_of(path);
    let jobs = cut(jobs::jobs(path)?, days);
    let Some(last) = jobs.last() else { bail!("{}: no jobs", path.display()) };
    let days = last.submit.since(jobs[0].submit).as_secs_f64() / 86_400.0;
    eprintln!("{name}: {} jobs in {days:.1} days", jobs.len());
    Ok((name, jobs))
}

fn measure(args: &Args, trace: &str, strategy: &Strategy, jobs: &[Job]) -> anyhow::Result<Line> {
    let gangs = jobs.iter().filter(|job| job.gang.min_members() > 1).count();
    let seeds = args.seed..args.seed + args.seeds.max(1);
    let runs = seeds.map(|seed| strategy.run(jobs, seed, args.idle_after, &args.set));
    let runs: Vec<Measured> = runs.collect::<anyhow::Result<_>>()?;
    Ok(Line::of(trace, strategy.name, &runs, gangs))
}

/// The ITP traces in a folder, by name; none when there is no such folder.
fn itp(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !dir.is_dir() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for entry in dir.read_dir()? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with("cluster") && (name.ends_with(".csv") || name.ends_with(".csv.gz")) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The name of a trace: that of its file without extensions.
fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.trim_end_matches(".gz").trim_end_matches(".csv").to_owned()
}

/// The jobs of the first days.
fn cut(mut jobs: Vec<Job>, days: Option<u64>) -> Vec<Job> {
    if let (Some(days), Some(first)) = (days, jobs.first().map(|job| job.submit)) {
        let end = first + Span::hours(24).saturating_mul(days);
        jobs.retain(|job| job.submit < end);
    }
    jobs
}
