//! Developer chores. `cargo xtask --help` lists them.

mod bench;
mod faults;

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
}

fn main() -> ExitCode {
    let result = match Args::parse().chore {
        Chore::Faults(args) => faults::run(&args),
        Chore::Bench(args) => bench::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
