//! `muster simulate --openb`: how many of a cluster's GPUs a list of pods can allocate.

use std::io::IsTerminal;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args as ClapArgs;
use comfy_table::{CellAlignment, Table, presets};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use muster_sim::packing::{Packed, Packing};
use muster_sim::trace::{TraceError, openb};
use serde::Serialize;

use crate::commands::simulate::command::SIMULATED;
use crate::exit::UsageError;
use crate::figures::grouped;
use crate::stdout;

#[derive(ClapArgs)]
#[group(id = "packing")]
pub(crate) struct Args {
    /// Instead of simulating time: place the pods of an openb list on the nodes of another, one at a time and in random
    /// order, until nothing more fits, and print how many GPUs are allocated
    #[arg(
        long,
        num_args = 2,
        value_names = ["NODES", "PODS"],
        conflicts_with_all = SIMULATED,
        help_heading = "Packing"
    )]
    pub(crate) openb: Vec<PathBuf>,
    /// The number of random orders of the pods, with seeds counted from --seed
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..), requires = "openb", help_heading = "Packing")]
    seeds: u64,
    /// Random pods are repeated until all requests together are this many times the GPUs of the nodes
    #[arg(long, value_name = "TIMES", default_value_t = 1.3, value_parser = times, requires = "openb", help_heading = "Packing")]
    inflate: f64,
}

/// The largest factor that is accepted; far below it nothing fits any more.
const TIMES_MAX: f64 = 100.0;

fn times(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(times) if times > 0.0 && times <= TIMES_MAX => Ok(times),
        _ => Err(format!("a number above 0 and up to {TIMES_MAX} belongs here")),
    }
}

/// The results of all seeds.
#[derive(Serialize)]
struct Outcome {
    nodes: usize,
    gpus: u64,
    pods: usize,
    inflate: f64,
    seed: u64,
    seeds: u64,
    asked_percent_mean: f64,
    allocated_percent_mean: f64,
    allocated_percent_sd: f64,
    allocated_percent: Vec<f64>,
    unallocated_gpus_mean: f64,
    placed_mean: f64,
    dropped_mean: f64,
}

pub(crate) fn run(args: &Args, seed: u64, json: bool) -> anyhow::Result<()> {
    let refused = |error: TraceError| UsageError(error.to_string());
    let [nodes, pods] = args.openb.as_slice() else {
        return Err(UsageError("--openb takes a list of nodes and a list of pods".into()).into());
    };
    let list = openb::read_nodes(nodes).map_err(refused)?;
    if list.iter().all(|node| node.gpus == 0) {
        let nodes = nodes.display();
        return Err(
            UsageError(format!("{nodes}: no node has a GPU, there is nothing to fill")).into()
        );
    }
    let requests = openb::read_pods(pods).map_err(refused)?;
    if requests.iter().all(|pod| pod.request.gpu_milli() == 0) {
        let pods = pods.display();
        return Err(UsageError(format!(
            "{pods}: no pod asks for a GPU, there is nothing to place"
        ))
        .into());
    }
    let bar = progress(args.seeds);
    let mut runs = Vec::new();
    for seed in (0..args.seeds).map(|i| seed.wrapping_add(i)) {
        let mut packing = Packing::new(&list, &requests, args.inflate, seed)
            .with_context(|| format!("{} or {}", nodes.display(), pods.display()))?;
        let all = packing.left();
        while packing.left() > 0 {
            packing.step().context("the planner's own decision is refused")?;
            let done = (all - packing.left()) * PARTS as usize / all;
            bar.set_position(runs.len() as u64 * PARTS + done as u64);
        }
        runs.push(packing.packed());
    }
    bar.finish_and_clear();
    let outcome = Outcome {
        nodes: list.len(),
        pods: requests.len(),
        inflate: args.inflate,
        seed,
        ..Outcome::of(&runs)
    };
    if json {
        stdout::line(serde_json::to_string(&outcome)?);
    } else {
        stdout::line(table(&outcome));
    }
    Ok(())
}

impl Outcome {
    fn of(runs: &[Packed]) -> Self {
        let percents: Vec<f64> = runs.iter().map(Packed::allocated_percent).collect();
        let mean_of = |value: fn(&Packed) -> f64| mean(&runs.iter().map(value).collect::<Vec<_>>());
        Self {
            nodes: 0,
            gpus: runs.first().map_or(0, |run| run.capacity_milli / 1_000),
            pods: 0,
            inflate: 0.0,
            seed: 0,
            seeds: runs.len() as u64,
            asked_percent_mean: mean_of(|run| {
                100.0 * run.asked_milli as f64 / run.capacity_milli.max(1) as f64
            }),
            allocated_percent_mean: mean(&percents),
            allocated_percent_sd: sd(&percents),
            unallocated_gpus_mean: mean_of(|run| {
                (run.capacity_milli - run.allocated_milli) as f64 / 1_000.0
            }),
            placed_mean: mean_of(|run| run.placed as f64),
            dropped_mean: mean_of(|run| (run.pods - run.placed) as f64),
            allocated_percent: percents,
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The standard deviation of a sample; 0 of a single one.
fn sd(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / values.len().saturating_sub(1).max(1) as f64).sqrt()
}

fn table(outcome: &Outcome) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    let rows = [
        ("GPUs", grouped(outcome.gpus)),
        ("nodes", grouped(outcome.nodes as u64)),
        ("pods listed", grouped(outcome.pods as u64)),
        ("orders tried", grouped(outcome.seeds)),
        ("GPUs asked for, % of all", format!("{:.2}", outcome.asked_percent_mean)),
        ("GPUs allocated, % of all, mean", format!("{:.2}", outcome.allocated_percent_mean)),
        ("GPUs allocated, % of all, sd", format!("{:.2}", outcome.allocated_percent_sd)),
        ("GPUs not allocated, mean", format!("{:.1}", outcome.unallocated_gpus_mean)),
        ("pods placed, mean", format!("{:.1}", outcome.placed_mean)),
        ("pods dropped, mean", format!("{:.1}", outcome.dropped_mean)),
    ];
    for (what, value) in rows {
        table.add_row([what.to_owned(), value]);
    }
    if let Some(column) = table.column_mut(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Steps of the progress bar per order of the pods.
const PARTS: u64 = 100;

fn progress(seeds: u64) -> ProgressBar {
    let bar = ProgressBar::new(seeds * PARTS);
    if !std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let template = "placing {bar:40} {percent} %, {eta} left";
    bar.set_style(ProgressStyle::with_template(template).expect("a valid template"));
    bar
}
