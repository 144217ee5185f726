//! Arguments and run of `muster simulate`.

use std::io::IsTerminal;
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{Args as ClapArgs, ValueEnum, value_parser};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use muster_core::time::{Span, Time};
use muster_plan::policy::Failover;
use muster_plan::{Policy, QueueOrder};
use muster_sim::workload::Preset;
use muster_sim::{Setup, Sim, SimOptions, Step, Summary};

use crate::commands::replay;
use crate::commands::simulate::{inputs, outputs, packing, supply};
use crate::simulation::start_time::StartTime;
use crate::simulation::why;
use crate::{policy_options, report, stdout};

/// Run a workload in virtual time, as fast as possible, and print what it came to.
///
/// Supply comes from manifests (nodes, pools, queues, topology) or from --nodes or --procs; demand comes from
/// manifests, from a trace (--trace, --swf, --csv) or from a generator (--workload). Several policies are run one after
/// the other on the same input and compared. Jobs that can never run are listed on standard error.
#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Manifests with nodes, pools, queues, topology and gangs
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// A trace, plain or gzipped; its format is recognised by the first line: Standard Workload Format, Muster's own
    /// table, logs of GPU clusters (job_id, submit_time, duration, num_gpu, ...), openb pod lists
    #[arg(long, value_name = "FILE", help_heading = "Demand")]
    pub(crate) trace: Option<PathBuf>,
    /// A trace in Standard Workload Format, plain or gzipped
    #[arg(long, value_name = "FILE", help_heading = "Demand")]
    pub(crate) swf: Option<PathBuf>,
    /// A trace as a table: submit_s, run_s, members, and optional columns, plain or gzipped
    #[arg(long, value_name = "FILE", help_heading = "Demand")]
    pub(crate) csv: Option<PathBuf>,
    /// A synthetic workload: training, mixed or bursty
    #[arg(long, value_name = "NAME", help_heading = "Demand")]
    pub(crate) workload: Option<Preset>,
    /// The number of jobs of the synthetic workload
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1_000,
        requires = "workload",
        help_heading = "Demand"
    )]
    pub(crate) jobs: u32,
    /// Processors of the machine that a trace in Standard Workload Format ran on; taken from its header when absent
    #[arg(long, value_name = "N", help_heading = "Supply")]
    pub(crate) procs: Option<u32>,
    /// Add this many nodes, in racks of 16, or the nodes of an openb node list
    #[arg(long, value_name = "N|FILE", help_heading = "Supply")]
    pub(crate) nodes: Option<supply::Nodes>,
    /// How many nodes of a zone's offerings were available over time, as a JSON record {"metadata": {"gap_seconds": N},
    /// "data": [N, ...]}; replaces the stockOut of the pool
    #[arg(long, value_name = "ZONE=FILE", help_heading = "Supply")]
    pub(crate) availability: Vec<supply::Recorded>,
    /// GPUs of each added node; jobs of a GPU cluster's log that need more are gangs of such nodes
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = value_parser!(u16).range(0..=64), help_heading = "Supply")]
    pub(crate) gpus_per_node: u16,
    #[arg(long, value_name = "NAME", default_value = "muster", help = policy_help())]
    policy: Vec<QueueOrder>,
    /// The order in which offerings are tried: `by-cost` by expected cost (price, time to boot, odds of a stock-out),
    /// `as-listed` as the pools list them
    #[arg(long, value_name = "NAME", default_value = "by-cost", help_heading = "Supply")]
    failover: Failover,
    #[arg(long, value_name = "NAME=VALUE", help = policy_options::settings_help())]
    set: Vec<String>,
    /// How events of one instant are ordered: `muster` applies all of them and plans once, `pyss` plans after every
    /// submission and every end, as the simulator behind the published backfilling results does
    #[arg(long, value_name = "NAME", default_value = "muster", value_enum)]
    event_order: EventOrder,
    /// Which run times of a trace the planner gets: what users requested, or the true ones
    #[arg(
        long,
        value_name = "WHOSE",
        default_value = "requested",
        value_enum,
        help_heading = "Demand"
    )]
    pub(crate) estimates: WhoseEstimates,
    #[command(flatten)]
    pub(crate) begin: StartTime,
    /// The random seed; the same seed gives the same run
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Stop after this much simulated time, such as 90m or 7d
    #[arg(long, value_name = "SPAN")]
    until: Option<Span>,
    /// Say why this gang waits when the simulation stops, when it is expected to start, and what would start it
    #[arg(long, value_name = "GANG", help_heading = "Output")]
    why: Vec<String>,
    /// Do not check the promises after every step; faster
    #[arg(long)]
    no_check: bool,
    /// Write a line `id,start` for every job, start in seconds; of the first policy
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    starts: Option<PathBuf>,
    /// Record every event and every plan for `muster replay`; of the first policy
    #[arg(long, visible_alias = "save-plan", value_name = "FILE", help_heading = "Output")]
    record: Option<PathBuf>,
    /// Write one HTML page that compares all policies: tables, waits, timelines and shares
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    report: Option<PathBuf>,
    /// Repeat every decision of a recording instead of simulating
    #[arg(long, value_name = "FILE", conflicts_with_all = SIMULATING, help_heading = "Output")]
    replay: Option<PathBuf>,
    #[command(flatten)]
    packing: packing::Args,
    /// Print one JSON object per policy
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// Options that do not apply to a replay.
const SIMULATING: [&str; 9] =
    ["files", "trace", "swf", "csv", "workload", "begin", "starts", "record", "report"];

/// Options that do not apply to packing, which has no time and no queue.
pub(crate) const SIMULATED: [&str; 17] = [
    "files",
    "trace",
    "swf",
    "csv",
    "workload",
    "procs",
    "nodes",
    "availability",
    "policy",
    "failover",
    "event_order",
    "estimates",
    "until",
    "why",
    "starts",
    "record",
    "report",
];

const EXAMPLES: &str = "\
Examples:
  muster simulate examples/quickstart.yaml
  muster simulate --workload training --jobs 500 --nodes 512
  muster simulate --swf log.swf.gz --procs 100 --policy fifo --starts starts.csv
  muster simulate --trace examples/traces/jobs.csv --nodes 8
  muster simulate --trace examples/traces/pods.csv --nodes examples/traces/nodes.csv
  muster simulate --openb examples/traces/nodes.csv examples/traces/pods.csv --seeds 3
  muster simulate --workload mixed --nodes 256 --policy easy --policy muster --report report.html
  muster simulate pools.yaml --csv jobs.csv --record run.jsonl && muster replay run.jsonl";

/// How events of one instant are ordered.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EventOrder {
    Muster,
    Pyss,
}

/// Which run times the planner gets.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhoseEstimates {
    Requested,
    True,
}

fn policy_help() -> String {
    format!("{}; may be repeated, to compare several", policy_options::orders_help())
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(file) = &args.replay {
        return replay::replay_file(file, args.json);
    }
    if !args.packing.openb.is_empty() {
        return packing::run(&args.packing, args.seed, args.json);
    }
    let setup = inputs::setup(args)?;
    let mut starts = args.starts.as_deref().map(outputs::create).transpose()?;
    let mut report =
        args.report.as_deref().map(|file| outputs::report(file, &setup)).transpose()?;
    let mut summaries = Vec::new();
    let mut broken = None;
    for (i, order) in args.policy.iter().enumerate() {
        // Start times and recordings are of the first policy; several would overwrite each other.
        let first = i == 0;
        let (sim, summary) = simulate(args, setup.clone(), *order, first)?;
        if let Some(out) = starts.take() {
            outputs::starts(out, &sim).context("--starts cannot be written")?;
        }
        outputs::warn_of_unfinished(&sim, order.name());
        for line in args.why.iter().flat_map(|name| why::lines(&sim, name)) {
            stdout::line(line);
        }
        if let Some((_, gather)) = &mut report {
            gather.add(&sim, summary.clone());
        }
        broken = broken.or_else(|| sim.violations().first().cloned());
        summaries.push(summary);
    }
    if let Some((out, gather)) = report {
        let invocation = outputs::invocation(args);
        report::write(out, &gather.finish(), &invocation).context("--report cannot be written")?;
    }
    outputs::print(&summaries, args.json)?;
    match broken {
        Some(violation) => bail!("a promise was broken: {violation}"),
        None => Ok(()),
    }
}

/// The simulation ends when this much time beyond the longest run time passes and no job ends: a cloud that never
/// delivers would be retried for ever.
const PATIENCE: Span = Span::hours(24 * 7);

fn simulate(
    args: &Args,
    setup: Setup,
    order: QueueOrder,
    record: bool,
) -> anyhow::Result<(Sim, Summary)> {
    // Verdicts are computed only where they are read: for recordings, and for the check that no gang overtakes under
    // fifo.
    let explain = record && args.record.is_some() || order == QueueOrder::Fifo;
    let mut policy = Policy { order, explain, failover: args.failover, ..Policy::default() };
    policy_options::apply(&mut policy, &args.set)?;
    let recorder = args.record.as_deref().filter(|_| record).map(outputs::recorder).transpose()?;
    let step = match args.event_order {
        EventOrder::Muster => Step::Instant,
        EventOrder::Pyss => Step::Pyss,
    };
    let check = !args.no_check;
    let options = SimOptions { seed: args.seed, step, check, recorder, ..SimOptions::default() };
    let jobs = setup.jobs.len();
    let patience = PATIENCE + setup.jobs.iter().map(|job| job.run).max().unwrap_or_default();
    let last_submit = setup.jobs.iter().map(|job| job.submit).max().unwrap_or_default();
    let mut sim = Sim::new(setup, policy, options)?;
    let until = args.until.map_or(Time::MAX, |span| Time::ZERO + span);
    let bar = progress(jobs, order);
    outputs::warn_of_refused(&mut sim, &bar);
    let (mut unfinished, mut give_up) = (jobs, last_submit + patience);
    while sim.next_at().is_some_and(|at| at <= until.min(give_up)) && !sim.is_over() {
        sim.step();
        if sim.unfinished() != unfinished {
            unfinished = sim.unfinished();
            give_up = last_submit.max(sim.now()) + patience;
        }
        if sim.steps().is_multiple_of(256) {
            bar.set_position((jobs - sim.unfinished()) as u64);
        }
    }
    bar.finish_and_clear();
    if let Some(recorder) = sim.recorder_mut() {
        recorder.finish().context("--record cannot be written")?;
    }
    sim.close();
    let summary = Summary::of(&sim, order.name(), !args.no_check);
    Ok((sim, summary))
}

fn progress(jobs: usize, order: QueueOrder) -> ProgressBar {
    let bar = ProgressBar::new(jobs as u64);
    if !std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let template = "{prefix} {bar:40} {pos}/{len} jobs, {eta} left";
    bar.set_style(ProgressStyle::with_template(template).expect("a valid template"));
    bar.set_prefix(order.name());
    bar
}
