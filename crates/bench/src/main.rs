//! The benchmarks as a program of their own; `cargo xtask bench` is the same.

use std::process::ExitCode;

use clap::Parser;

/// Benchmarks of Muster.
#[derive(Parser)]
#[command(name = "muster-bench", version)]
struct Command {
    #[command(flatten)]
    args: muster_bench::Args,
}

fn main() -> ExitCode {
    match muster_bench::run(&Command::parse().args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
