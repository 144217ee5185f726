//! The `muster` command: parses the command line and runs one command.

mod commands;

mod client;
mod report;
mod simulation;
mod timeline;

mod exit;
mod owner_credential;
mod policy_options;
mod signals;
mod stdout;
mod worker_output;
mod yaml;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use muster_api::{figures, words};

use crate::commands::{
    check, completions, crds, internal, rehearse, replay, run, simulate, token, up, why_kube,
};

/// Muster assembles the whole set of GPU nodes a distributed job needs, and only then starts all of its
/// workers together, or none at all.
///
/// A gang is a set of members that start together; a pool is a supply of nodes that can be bought; an order is
/// the set of nodes bought for one gang. All of them are described in manifests, YAML files in the style of
/// Kubernetes.
#[derive(Parser)]
#[command(name = "muster", version, propagate_version = true, after_help = AFTER_HELP, max_term_width = 110)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Try it:
  muster run examples/quickstart.yaml              real processes on simulated nodes, in a minute
  muster check examples/quickstart.yaml            is this manifest right?
  muster simulate --workload training --nodes 512  what if?

Exit codes: 0 done; 1 something failed while running; 2 the input or the command line is wrong;
3 a gang did not succeed (submit --wait); 4 timeout (submit --timeout).";

// The help of a command is on its `Args`: a doc comment here would hide the longer one there.
#[derive(Subcommand)]
enum Command {
    Run(run::Args),
    Up(up::Args),
    Token(token::Args),
    Rehearse(rehearse::Args),
    Simulate(Box<simulate::Args>),
    Replay(replay::Args),
    Check(check::Args),
    Why(why_kube::Args),
    #[command(flatten)]
    Client(client::Command),
    Crds(crds::Args),
    Completions(completions::Args),
    Keep(internal::KeepArgs),
    Gate(internal::GateArgs),
    Door(internal::DoorArgs),
}

fn main() -> ExitCode {
    let result = match Args::parse().command {
        Command::Run(args) => run::run(&args),
        Command::Up(args) => up::run(&args),
        Command::Token(args) => token::run(&args),
        Command::Rehearse(args) => rehearse::run(&args),
        Command::Keep(args) => return internal::keep(&args),
        Command::Gate(args) => return internal::gate(&args),
        Command::Door(args) => return internal::door(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Why(args) => why_kube::run(&args),
        Command::Client(command) => client::run(&command),
        Command::Crds(args) => crds::run(&args),
        Command::Completions(args) => {
            completions::run(&args);
            Ok(())
        }
    };
    exit::code(result)
}
