//! `muster keep` and `muster gate`: what stands between the control plane and a gang's workers. Nobody types these.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args as ClapArgs;

/// Keep the members of one run of a gang. Started by Muster itself.
#[derive(ClapArgs)]
#[command(hide = true)]
pub(crate) struct KeepArgs {
    /// The run's directory
    directory: PathBuf,
}

/// Wait at the gate of a gang, then become one of its members. Started by Muster itself.
#[derive(ClapArgs)]
#[command(hide = true)]
pub(crate) struct GateArgs {
    /// What to become
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

pub(crate) fn keep(args: &KeepArgs) -> ExitCode {
    muster_local::keep(&args.directory)
}

pub(crate) fn gate(args: &GateArgs) -> ExitCode {
    muster_local::gate(&args.command)
}
