//! `muster keep`, `muster gate` and `muster door`: hidden commands that the control plane starts. `keep` supervises one
//! run of a gang, `gate` is the start barrier of a member, `door` is the remote shell of `mpirun`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args as ClapArgs;
use muster_local::AsWhom;

/// Supervise the members of one run of a gang. Started by Muster itself.
#[derive(ClapArgs)]
#[command(hide = true)]
pub(crate) struct KeepArgs {
    /// The run's directory
    directory: PathBuf,
}

/// Wait at the start barrier of a gang, then become one of its members. Started by Muster itself.
#[derive(ClapArgs)]
#[command(hide = true)]
pub(crate) struct GateArgs {
    /// The file mode creation mask of the member
    #[arg(long)]
    umask: Option<u32>,
    /// The Unix user to become
    #[arg(long)]
    run_as: Option<String>,
    /// The working directory of that user
    #[arg(long)]
    directory: Option<PathBuf>,
    /// The command to become
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// Run a command beside a member of the same gang, as `ssh` would. Started by `mpirun`.
#[derive(ClapArgs)]
#[command(hide = true)]
pub(crate) struct DoorArgs {
    /// The member, by its name in the hostfile
    host: String,
    /// The command, for a shell
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
