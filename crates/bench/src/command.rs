//! The command line of the benchmarks. Every figure in the docs comes from their output.

use clap::{Args as ClapArgs, Subcommand};

use crate::{elastic, hits, kube, local, plan, replay, supply};

/// Measure one part of Muster.
#[derive(ClapArgs, Debug)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Elastic gangs: recorded gang jobs on one cluster, half of them elastic, beside all of them rigid
    Elastic(elastic::Args),
    /// Gang hits against idle nodes: static warm pools and the forecast on real traces
    Hits(hits::Args),
    /// Kubernetes: pods bound per second on a real API server, beside kube-scheduler
    Kube(kube::Args),
    /// The embedded control plane: submissions and event streams over loopback
    Local(local::Args),
    /// The planner: one large gang, a full cycle, memory, for 100, 1,000 and 10,000 nodes
    Plan(plan::Args),
    /// The simulator: a synthetic log of jobs replayed under one order, for a quarter, a half and all of it
    Replay(replay::Args),
    /// Supply: recorded gang jobs served with purchased nodes, by Muster and by three other provisioners
    Supply(supply::Args),
}

/// Runs the benchmark that is named.
///
/// # Errors
/// When an input cannot be read, or when a program that is measured fails.
pub fn run(args: &Args) -> anyhow::Result<()> {
    match &args.what {
        What::Elastic(args) => elastic::run(args),
        What::Hits(args) => hits::run(args),
        What::Kube(args) => kube::run(args),
        What::Local(args) => local::run(args),
        What::Plan(args) => plan::run(args),
        What::Replay(args) => replay::run(args),
        What::Supply(args) => supply::run(args),
    }
}
