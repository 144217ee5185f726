//! Developer chores. `cargo xtask --help` lists them.

mod docs;
mod faults;
#[cfg(test)]
mod maps;
mod prose;
mod supply_chain;
mod testbed;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use supply_chain::{attempts, deny, notices, sbom};

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
    Bench(muster_bench::Args),
    /// Build the real Kubernetes that tests run against
    Testbed(testbed::Args),
    /// Check the dependency tree: advisories, licences, bans, sources
    Deny(deny::Args),
    /// Write THIRD-PARTY-NOTICES from the packages that are linked into the shipped binaries
    Notices(notices::Args),
    /// Write a CycloneDX bill of materials for each shipped binary to target/sbom
    Sbom(sbom::Args),
    /// The documentation: its generated sections, its site, its picture
    Docs(docs::Args),
    /// Write the list of attempts in docs/reference/security-tests.md from the tests that make them
    Attempts(attempts::Args),
    /// Count mannered comments by crate; with --check also the sizes and names that the house rules bound
    Prose(prose::Args),
}

fn main() -> ExitCode {
    let result = match Args::parse().chore {
        Chore::Faults(args) => faults::run(&args),
        Chore::Bench(args) => muster_bench::run(&args),
        Chore::Testbed(args) => testbed::run(&args),
        Chore::Deny(args) => deny::run(&args),
        Chore::Notices(args) => notices::run(&args),
        Chore::Sbom(args) => sbom::run(&args),
        Chore::Docs(args) => docs::run(&args),
        Chore::Attempts(args) => attempts::run(&args),
        Chore::Prose(args) => prose::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
