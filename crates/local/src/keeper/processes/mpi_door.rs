//! The rsh agent of MPI jobs: `mpirun` starts its daemons on a member as it would on a host through `ssh`.
//!
//! Workers of an MPI job are separate hosts to `mpirun`, though all of them are on this machine. So a process that is
//! started on a worker gets that worker's environment, including its devices, and its limits; and files that Open MPI
//! shares between the ranks of one host are kept apart.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::keeper::journal::{Record, read};
use crate::keeper::processes::cgroup::groups_of;
use crate::keeper::processes::leftovers::MARK;
use crate::keeper::run_plan::{MemberPlan, RunPlan};

/// Exit code when there is no such host, as with `ssh`.
const NO_HOST: u8 = 255;
/// Variables of gang members that MPI ranks must not inherit; MPI assigns its own ranks.
const RANK_VARIABLES: [&str; 6] =
    ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK"];
/// Where Open MPI 4 and 5 put files that all ranks of one host share. The files are named after the machine, and
/// several hosts on one machine would use each other's.
const SHARED: [&str; 6] = [
    "OMPI_MCA_btl_vader_backing_directory",
    "OMPI_MCA_btl_sm_backing_directory",
    "OMPI_MCA_osc_sm_backing_directory",
    "OMPI_MCA_osc_rdma_backing_directory",
    "OMPI_MCA_orte_tmpdir_base",
    "PRTE_MCA_prte_tmpdir_base",
];

/// How `mpirun` of Open MPI 4 and 5 finds the agent: this program, while this process lives. The value is split into
/// words, so a user's path, which may have spaces, would not work.
pub(crate) fn agent_variables() -> [(&'static str, String); 2] {
    let door = format!("/proc/{}/exe door", std::process::id());
    [("OMPI_MCA_plm_rsh_agent", door.clone()), ("PRTE_MCA_plm_ssh_agent", door)]
}

/// Executes a command, given as to `ssh`, beside the member with this name, in the run that this process belongs to.
/// Returns only on failure.
pub fn door(host: &str, command: &[String]) -> ExitCode {
    let Some(directory) = std::env::var_os(MARK).map(PathBuf::from) else {
        eprintln!("this is no process of a gang: {MARK} is not set");
        return ExitCode::from(NO_HOST);
    };
    let error = match shell_beside(&directory, host) {
        Ok(mut shell) => shell.arg(command.join(" ")).exec(),
        Err(error) => error,
    };
    eprintln!("{host}: {error}");
    ExitCode::from(NO_HOST)
}

/// A shell beside a member, without its command.
fn shell_beside(directory: &Path, host: &str) -> std::io::Result<Command> {
    let plan = RunPlan::read(directory)?;
    let is_it = |member: &&MemberPlan| member.host.as_ref().is_some_and(|one| one.name == host);
    let Some(member) = plan.members.iter().find(is_it) else {
        return Err(std::io::Error::other("there is no such host in this gang"));
    };
    let shared = directory.join("mpi").join(host);
    std::fs::create_dir_all(&shared)?;
    join_cgroups(directory, member.rank);
    let mut shell = Command::new("sh");
    shell.arg("-c").envs(&member.env);
    for name in RANK_VARIABLES {
        shell.env_remove(name);
    }
    shell.envs(SHARED.map(|name| (name, &shared)));
    Ok(shell)
}

/// Joins the control groups of a member. If there are none, or they cannot be joined, a warning was given before.
fn join_cgroups(directory: &Path, rank: u32) {
    let known = read(directory).unwrap_or_default();
    let group = known.iter().rev().find_map(|record| match record {
        Record::Ready { groups, .. } => groups.get(rank as usize).copied(),
        _ => None,
    });
    let Some(pid) = group else { return };
    let own = std::process::id().to_string();
    for group in groups_of(pid) {
        let _ = std::fs::write(group.join("cgroup.procs"), &own);
    }
}
