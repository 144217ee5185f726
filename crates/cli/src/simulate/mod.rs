//! `muster simulate`.

mod inputs;
mod outputs;

use std::io::IsTerminal;
use std::path::PathBuf;

use anyhow::bail;
use clap::Args as ClapArgs;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use muster_core::time::{Span, Time};
use muster_plan::{Policy, QueueOrder};
use muster_sim::workload::Preset;
use muster_sim::{Setup, Sim, SimOptions, Summary};

/// Run a workload in virtual time, as fast as it goes, and say what it came to.
///
/// Supply comes from manifests (nodes, pools, queues, topology) or from --nodes or --procs; demand comes from
/// manifests, from a trace (--swf, --csv) or from a generator (--workload). Several policies are run one
/// after the other on the same input and shown side by side.
#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Manifests with nodes, pools, queues, topology and gangs
    #[arg(value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
    /// A trace in Standard Workload Format, plain or gzipped
    #[arg(long, value_name = "FILE", help_heading = "Demand")]
    pub(super) swf: Option<PathBuf>,
    /// A trace as a table: submit_s, run_s, members, and more columns if you like, plain or gzipped
    #[arg(long, value_name = "FILE", help_heading = "Demand")]
    pub(super) csv: Option<PathBuf>,
    /// A synthetic workload: training, mixed or bursty
    #[arg(long, value_name = "NAME", help_heading = "Demand")]
    pub(super) workload: Option<Preset>,
    /// How many jobs the synthetic workload has
    #[arg(long, value_name = "N", default_value_t = 1_000, help_heading = "Demand")]
    pub(super) jobs: usize,
    /// Processors of the machine a --swf trace ran on; its header says so if this does not
    #[arg(long, value_name = "N", help_heading = "Supply")]
    pub(super) procs: Option<u32>,
    /// Add this many nodes, in racks of 16
    #[arg(long, value_name = "N", help_heading = "Supply")]
    pub(super) nodes: Option<u32>,
    /// GPUs of each added node
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(0..=64), help_heading = "Supply")]
    pub(super) gpus_per_node: u16,
    /// How the queue is ordered; give it several times to compare
    #[arg(long, value_name = "NAME", default_value = "fifo", value_parser = policy)]
    policy: Vec<QueueOrder>,
    /// Where randomness starts; the same seed gives the same run
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// Stop after this much simulated time
    #[arg(long, value_name = "SPAN")]
    until: Option<Span>,
    /// Do not check the promises after every step; faster
    #[arg(long)]
    no_check: bool,
    /// Write a line `id,start` for every job, start in seconds
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    starts: Option<PathBuf>,
    /// Record every event and every plan, for `muster replay`
    #[arg(long, visible_alias = "save-plan", value_name = "FILE", help_heading = "Output")]
    record: Option<PathBuf>,
    /// Take every decision of a recording again instead of simulating
    #[arg(long, value_name = "FILE", exclusive = true, help_heading = "Output")]
    replay: Option<PathBuf>,
    /// Print one JSON object per policy
    #[arg(long, help_heading = "Output")]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  muster simulate examples/quickstart.yaml
  muster simulate --workload training --jobs 500 --nodes 512
  muster simulate --swf log.swf.gz --procs 100 --policy fifo --starts starts.csv
  muster simulate pools.yaml --csv jobs.csv --record run.jsonl && muster replay run.jsonl";

fn policy(name: &str) -> Result<QueueOrder, String> {
    QueueOrder::named(name).ok_or_else(|| {
        let names: Vec<&str> = QueueOrder::NAMES.iter().map(|(name, _)| *name).collect();
        format!("no such policy; there are {}", names.join(", "))
    })
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(file) = &args.replay {
        return crate::replay::replay_file(file, args.json);
    }
    let setup = inputs::setup(args)?;
    let mut summaries = Vec::new();
    let mut broken = None;
    for (i, order) in args.policy.iter().enumerate() {
        // Files are of the first policy; side by side they would overwrite each other.
        let first = i == 0;
        let (sim, summary) = simulate(args, setup.clone(), *order, first)?;
        if let Some(file) = args.starts.as_ref().filter(|_| first) {
            outputs::starts(file, &sim)?;
        }
        broken = broken.or_else(|| sim.violations().first().cloned());
        summaries.push(summary);
    }
    outputs::print(&summaries, args.json)?;
    match broken {
        Some(violation) => bail!("a promise was broken: {violation}"),
        None => Ok(()),
    }
}

fn simulate(
    args: &Args,
    setup: Setup,
    order: QueueOrder,
    record: bool,
) -> anyhow::Result<(Sim, Summary)> {
    let policy = Policy { order, ..Policy::default() };
    let recorder = match args.record.as_ref().filter(|_| record) {
        Some(file) => Some(outputs::recorder(file)?),
        None => None,
    };
    let options =
        SimOptions { seed: args.seed, check: !args.no_check, recorder, ..SimOptions::default() };
    let jobs = setup.jobs.len();
    let mut sim = Sim::new(setup, policy, options)?;
    let until = args.until.map_or(Time::MAX, |span| Time::ZERO + span);
    let bar = progress(jobs, order);
    while sim.next_at().is_some_and(|at| at <= until) && !sim.is_over() {
        sim.step();
        if sim.steps().is_multiple_of(256) {
            bar.set_position((jobs - sim.unfinished()) as u64);
        }
    }
    bar.finish_and_clear();
    if let Some(recorder) = sim.recorder_mut() {
        recorder.finish()?;
    }
    let summary = Summary::of(&sim, order.name(), !args.no_check);
    Ok((sim, summary))
}

fn progress(jobs: usize, order: QueueOrder) -> ProgressBar {
    let bar = ProgressBar::new(jobs as u64);
    if !std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let template = "{prefix} {bar:40} {pos}/{len} jobs, {per_sec}, {eta} left";
    bar.set_style(ProgressStyle::with_template(template).expect("a valid template"));
    bar.set_prefix(order.name());
    bar
}
