//! Developer chores. `cargo xtask --help` lists them.

mod bench;
mod faults;
mod testbed;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Chores of Muster's developers.
#[derive(Parser)]
#[command(name = "cargo xtask", version, propagate_version = true)]
struct Args {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Run random worlds with random faults and check every promise after every event
    Faults(faults::Args),
    /// Measure; every benchmark prints one JSON object per line on standard output and nothing else there
    Bench(bench::Args),
    /// Build the real Kubernetes that tests run against
    Testbed(testbed::Args),
}

fn main() -> ExitCode {
    let result = match Args::parse().chore {
        Chore::Faults(args) => faults::run(&args),
        Chore::Bench(args) => bench::run(&args),
        Chore::Testbed(args) => testbed::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
