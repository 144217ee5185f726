//! Benchmarks. What they print goes into the docs; nothing else does.

mod memory;
mod plan;
mod worlds;

use clap::{Args as ClapArgs, Subcommand};

/// Measure one part of Muster.
#[derive(ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// The planner: one large gang, a full cycle, memory, for 100, 1,000 and 10,000 nodes
    Plan(plan::Args),
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    match &args.what {
        What::Plan(args) => plan::run(args),
    }
}
