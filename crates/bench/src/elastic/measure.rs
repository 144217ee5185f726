//! The command: runs each trace with rigid and with elastic gangs on one cluster.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args as ClapArgs;
use muster_core::time::Span;
use muster_sim::Job;

use crate::elastic::cluster::{self, Measured};
use crate::elastic::jobs::{self, Elasticity};
use crate::elastic::results::{Line, together};
use crate::supply;

/// Run recorded traces of gang jobs on one cluster, with part of the gangs elastic and with all of them rigid.
///
/// The cluster is the same for both: the smallest of 8-GPU nodes on which rigid gangs wait little. One JSON object per
/// trace, over all seeds.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// Print one JSON object per line instead of a table
    #[arg(long)]
    json: bool,
    /// A trace with the columns job_id,submission_time,duration,num_gpu, gzipped or not; may be repeated
    #[arg(long, value_name = "FILE")]
    trace: Vec<PathBuf>,
    /// Where the ITP traces are, when no trace is named
    #[arg(long, value_name = "DIR", default_value_os_t = supply::default_anchors())]
    anchors: PathBuf,
    /// Seed of the choice of elastic gangs
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Runs, each with the next seed: another half of the gangs is elastic
    #[arg(long, value_name = "N", default_value_t = 3)]
    seeds: u64,
    /// Only jobs submitted within so many days of the first
    #[arg(long, value_name = "N")]
    days: Option<u64>,
    /// The cluster is the smallest on which rigid gangs wait for this part of their run time, on average
    #[arg(long, value_name = "PART", default_value_t = 0.1)]
    wait: f64,
    /// The cluster is such that the jobs request this part of it, from the first submission to the last
    #[arg(long, value_name = "PART", conflicts_with = "wait")]
    load: Option<f64>,
    /// The cluster has so many nodes
    #[arg(long, value_name = "N", conflicts_with_all = ["wait", "load"])]
    nodes: Option<u32>,
    /// The part of the gangs that is elastic
    #[arg(long, value_name = "PART", default_value_t = 0.5)]
    elastic: f64,
    /// The minimum of an elastic gang is its rigid size divided by this
    #[arg(long, value_name = "N", default_value_t = 1)]
    shrinks: u32,
    /// The maximum of an elastic gang is its rigid size times this
    #[arg(long, value_name = "N", default_value_t = 4)]
    grows: u32,
    /// The speed-up of twice the members as a part of twice the speed, in thousandths
    #[arg(long, value_name = "THOUSANDTHS", default_value_t = 900)]
    efficiency: u16,
    /// How long a gang pauses when its members change
    #[arg(long, value_name = "SPAN", default_value_t = Span::secs(30))]
    pub(super) resize_cost: Span,
    /// The error of users' estimates of run times: 0 when exact, 1 when most are within a factor of e
    #[arg(long, value_name = "SIGMA", default_value_t = 0.0)]
    error: f64,
    /// Check every promise after every step
    #[arg(long)]
    check: bool,
}

impl Args {
    fn elasticity(&self, seed: u64, part: f64) -> Elasticity {
        Elasticity {
            seed,
            part,
            shrinks: self.shrinks.max(1),
            grows: self.grows.max(1),
            efficiency: self.efficiency,
            resize: self.resize_cost,
            error: self.error,
        }
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let Some(traces) = supply::traces(&args.trace, &args.anchors)? else { return Ok(()) };
    if !args.json {
        println!("{}", Line::heading());
    }
    let mut lines = Vec::new();
    for path in &traces {
        let line = measure(args, path)?;
        eprintln!("{}: took {:.1} s", line.trace, line.seconds);
        println!("{}", if args.json { serde_json::to_string(&line)? } else { line.row() });
        lines.push(line);
    }
    eprintln!("{}", together(&lines));
    Ok(())
}

fn measure(args: &Args, path: &Path) -> anyhow::Result<Line> {
    let began = Instant::now();
    let (name, jobs) = supply::read(path, args.days)?;
    let nodes = match (args.nodes, args.load) {
        (Some(nodes), _) => nodes,
        (None, Some(load)) => cluster::nodes_for_load(&jobs, load),
        (None, None) => {
            let rigid = jobs::gangs(&jobs, &args.elasticity(args.seed, 0.0));
            cluster::nodes_for_wait(&jobs, &rigid, args.wait)?
        }
    };
    let mut pairs: Vec<(Measured, Measured)> = Vec::new();
    for seed in args.seed..args.seed + args.seeds.max(1) {
        let run = |part| -> anyhow::Result<Measured> {
            let gangs: Vec<Job> = jobs::gangs(&jobs, &args.elasticity(seed, part));
            cluster::run(gangs, nodes, args.check)
        };
        // Rigid gangs are the same whatever the seed, unless estimates are wrong.
        let off = match pairs.first() {
            Some((off, _)) if args.error == 0.0 => off.clone(),
            _ => run(0.0)?,
        };
        pairs.push((off, run(args.elastic)?));
    }
    Ok(Line::of(&name, args, nodes, &pairs, began.elapsed().as_secs_f64()))
}
