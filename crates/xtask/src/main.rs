//! Developer chores. `cargo xtask --help` lists them.

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
}

fn main() -> ExitCode {
    let result = match Args::parse().chore {
        Chore::Faults(args) => faults::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
