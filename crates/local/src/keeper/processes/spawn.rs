//! Spawns members behind the gate, and signals them.

use std::io::PipeWriter;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

use crate::keeper::files;
use crate::keeper::processes::cgroup::MemberCgroup;
use crate::keeper::processes::mpi_door;
use crate::keeper::run_plan::{MemberPlan, RunPlan};
use crate::system::resource_exhaustion::is_resource_exhaustion;

/// A process that waits at the gate, or has passed it.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) rank: u32,
    pub(crate) child: Child,
    pub(crate) group: Pid,
    pub(crate) cgroup: Option<MemberCgroup>,
    pub(crate) out: Option<ChildStdout>,
    pub(crate) err: Option<ChildStderr>,
}

/// All members at their gate.
#[derive(Debug)]
pub(crate) struct GatedMembers {
    /// Opens the gate. If it is dropped, no member passes.
    pub(crate) opener: PipeWriter,
    pub(crate) members: Vec<Member>,
    /// The first limit that could not be enforced.
    pub(crate) unlimited: Option<String>,
}

/// Why members cannot be started.
#[derive(Debug)]
pub(crate) struct SpawnError {
    /// The reason.
    pub(crate) why: String,
    /// Whether the system was only out of a resource.
    pub(crate) later: bool,
}

impl SpawnError {
    fn of(what: impl std::fmt::Display, error: &std::io::Error) -> Self {
        Self { why: format!("{what}: {error}"), later: is_resource_exhaustion(error) }
    }
}

impl From<String> for SpawnError {
    fn from(why: String) -> Self {
        Self { why, later: false }
    }
}

/// Spawns every member behind one gate, or returns the reason; then no member passes.
pub(crate) fn spawn(plan: &RunPlan) -> Result<GatedMembers, SpawnError> {
    for member in &plan.members {
        check(member)?;
    }
    let (reader, opener) = std::io::pipe().map_err(|error| SpawnError::of("no pipe", &error))?;
    let mut gate = GatedMembers { opener, members: Vec::new(), unlimited: None };
    for member in &plan.members {
        let waits = reader.try_clone().map_err(|error| SpawnError::of("no pipe", &error))?;
        let mut command = Command::new(files::PROGRAM);
        command.arg0("muster").arg("gate");
        if let Some(umask) = plan.umask {
            command.arg("--umask").arg(umask.to_string());
        }
        if let Some(user) = plan.run_as.as_deref() {
            command.arg("--run-as").arg(user);
            if let Some(directory) = &member.directory {
                command.arg("--directory").arg(directory);
            }
        }
        command.arg("--").args(&member.command);
        if plan.members.iter().any(|one| one.host.is_some()) {
            command.envs(mpi_door::agent_variables());
        }
        command.envs(&member.env).process_group(0);
        command.stdin(Stdio::from(waits)).stdout(Stdio::piped()).stderr(Stdio::piped());
        // With another user, the gate enters the directory as that user.
        if let Some(directory) = member.directory.as_ref().filter(|_| plan.run_as.is_none()) {
            command.current_dir(directory);
        }
        let mut child = command.spawn().map_err(|error| {
            let what = format!("member {} ({}) cannot be started", member.rank, member.role);
            SpawnError::of(what, &error)
        })?;
        let pid = child.id().and_then(|pid| Pid::from_raw(pid as i32));
        let Some(group) = pid else {
            return Err(format!("member {} ({}) was gone at once", member.rank, member.role).into());
        };
        let cgroup = match plan.group.as_ref().map(|run| run.add_member(member, group)) {
            Some(Ok(cgroup)) => Some(cgroup),
            Some(Err(why)) => {
                gate.unlimited.get_or_insert(why);
                None
            }
            None if member.memory.is_some() => {
                let why = "limits are not enforced: no control groups are granted";
                gate.unlimited.get_or_insert(why.to_owned());
                None
            }
            None => None,
        };
        let (out, err) = (child.stdout.take(), child.stderr.take());
        gate.members.push(Member { rank: member.rank, child, group, cgroup, out, err });
    }
    Ok(gate)
}

/// Checks that a member's program exists. All programs are checked before the first member is spawned.
fn check(member: &MemberPlan) -> Result<(), String> {
    let who = || format!("member {} ({})", member.rank, member.role);
    let Some(program) = member.command.first() else {
        return Err(format!("{} has no command", who()));
    };
    let directory = member.directory.as_deref().map(Path::new);
    if let Some(directory) = directory.filter(|directory| !directory.is_dir()) {
        return Err(format!(
            "{} is to run in {}, which is no directory",
            who(),
            directory.display()
        ));
    }
    let found = match program.contains('/') {
        true => is_program(&directory.map_or_else(|| program.into(), |from| from.join(program))),
        false => search_path(member).iter().any(|part| is_program(&part.join(program))),
    };
    if found { Ok(()) } else { Err(format!("{}: there is no command `{program}`", who())) }
}

/// Where programs are searched. The gate runs with the member's variables, and so with its `PATH`.
fn search_path(member: &MemberPlan) -> Vec<PathBuf> {
    let own = member.env.get("PATH").map(Into::into);
    let path = own.or_else(|| std::env::var_os("PATH")).unwrap_or_default();
    std::env::split_paths(&path).collect()
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

/// Sends a signal to the process group of a member; a missing group is ignored.
pub(crate) fn signal(group: Pid, signal: Signal) {
    let _ = kill_process_group(group, signal);
}
