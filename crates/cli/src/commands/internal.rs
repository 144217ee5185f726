//! `muster keep`, `muster gate` and `muster door`: what stands between the control plane and a gang's workers, and between
//! them. Nobody types these.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args as ClapArgs;
use muster_local::AsWhom;

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
    /// What is taken from the rights of files it makes
    #[arg(long)]
    umask: Option<u32>,
    /// The Unix user to become
    #[arg(long)]
    run_as: Option<String>,
    /// Where that user runs it
    #[arg(long)]
    directory: Option<PathBuf>,
    /// What to become
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// Run a command beside a member of the gang this process belongs to, as `ssh` would. Started by `mpirun`.
#[derive(ClapArgs)]
#[command(hide = true)]
pub(crate) struct DoorArgs {
    /// The member, by its name in the hostfile
    host: String,
    /// What to run, for a shell
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<String>,
}

pub(crate) fn keep(args: &KeepArgs) -> ExitCode {
    muster_local::keep(&args.directory)
}

pub(crate) fn gate(args: &GateArgs) -> ExitCode {
    let GateArgs { umask, run_as, directory, command } = args;
    let whom = AsWhom { umask: *umask, user: run_as.clone(), directory: directory.clone() };
    muster_local::gate(command, &whom)
}

pub(crate) fn door(args: &DoorArgs) -> ExitCode {
    muster_local::door(&args.host, &args.command)
}
