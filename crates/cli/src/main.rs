//! The `muster` command.

mod check;
mod completions;
mod exit;
mod figures;
mod load;

mod replay;
mod run;
mod simulate;
mod story;
mod words;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Muster assembles the whole set of GPU nodes a distributed job needs, and only then starts all of its
/// workers together, or none at all.
#[derive(Parser)]
#[command(name = "muster", version, propagate_version = true, after_help = AFTER_HELP, max_term_width = 110)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Try it:
  muster run examples/quickstart.yaml              the story in a minute, on simulated nodes
  muster check examples/quickstart.yaml            is this manifest right?
  muster simulate --workload training --nodes 512  what if?

Exit codes: 0 done; 1 something failed while running; 2 the input or the command line is wrong.";

#[derive(Subcommand)]
enum Command {
    /// Run gangs on simulated nodes in wall-clock time and tell the story as it happens
    Run(run::Args),
    /// Run a workload in virtual time, as fast as it goes, and say what it came to
    Simulate(Box<simulate::Args>),
    /// Take every decision of a recording again and see that it is the same, byte for byte
    Replay(replay::Args),
    /// Read manifests and report everything that is wrong with them
    Check(check::Args),
    /// Print a completion script for your shell
    Completions(completions::Args),
}

fn main() -> ExitCode {
    let result = match Args::parse().command {
        Command::Run(args) => run::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Completions(args) => {
            completions::run(&args);
            Ok(())
        }
    };
    exit::code(result)
}
