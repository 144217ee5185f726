//! Names of the files in a run's directory, and of the program that runs as a keeper.

/// The running program, also when another version has replaced its file.
pub(crate) const PROGRAM: &str = "/proc/self/exe";

/// The run plan.
pub(crate) const PLAN: &str = "run.json";
/// The journal.
pub(crate) const JOURNAL: &str = "journal.jsonl";
/// The processes of a run when last checked, where there is no control group.
pub(crate) const PROCESSES: &str = "processes";
/// Exit code of a keeper that could not start its members because the system was out of a resource.
pub(crate) const LATER: u8 = 111;
/// Locked while a keeper lives.
pub(crate) const LOCK: &str = "lock";
/// The keeper's socket.
pub(crate) const SOCKET: &str = "socket";
/// The number of members, and the coming number during a resize; for members to read.
pub(crate) const WORLD: &str = "world.json";
/// The MPI hostfile.
pub(crate) const HOSTFILE: &str = "hostfile";
/// The directory with the output of members.
pub(crate) const LOGS: &str = "logs";
