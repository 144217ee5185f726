//! Names of the files in a run's directory, and of the program that keepers are started with.

/// This very program, also when another version of it was put in its place since it was started.
pub(crate) const PROGRAM: &str = "/proc/self/exe";

/// Where the plan of a run is, in its directory.
pub(crate) const PLAN: &str = "run.json";
/// Where its journal is.
pub(crate) const JOURNAL: &str = "journal.jsonl";
/// Which processes a run had when it was last looked, where no control group says.
pub(crate) const PROCESSES: &str = "processes";
/// Returned by a keeper that could not start its members because the system has run out of something.
pub(crate) const LATER: u8 = 111;
/// Locked while a keeper lives.
pub(crate) const LOCK: &str = "lock";
/// Where the keeper listens.
pub(crate) const SOCKET: &str = "socket";
/// Where members find how many they are, and how many they are about to be.
pub(crate) const WORLD: &str = "world.json";
/// Where MPI finds them.
pub(crate) const HOSTFILE: &str = "hostfile";
/// Where what members print is.
pub(crate) const LOGS: &str = "logs";
