//! The keeper: a process of its own for each run of a gang, between Muster and the workers.
//!
//! Workers must outlive the control plane, and somebody must be there to hear how they end. So the control plane writes
//! down what to run (`plan`), starts a keeper, and may be killed at any instant after that. The keeper holds all members
//! behind one gate (`gate`), opens it when the last is there, keeps what they print (`print`) while the disk has room
//! (`space`), holds them to their limits in a control group of their own (`cgroup`), lets `mpirun` start ranks beside them (`door`), and writes down what becomes of them (`journal`). Whoever is started again reads the journal, or asks the
//! keeper that still lives through its socket (`talk`).
//!
//! The gate is a pipe that every member waits on. To open it is to write as many bytes as there are members. A keeper
//! that dies before closes the pipe by dying, and every member leaves without having run. One that dies after takes its
//! members with it: the system kills them when their parent dies, and what they have started is killed with the run's control
//! group, or found by what is known of it (`left`).
//!
//! Deliberately not here: any decision. A keeper does not start a gang again, nor somewhere else.

mod cgroup;
mod change;
mod door;
pub mod fuzzing;
mod gate;
mod journal;
mod keep;
mod left;
mod members;
mod plan;
mod print;
mod space;
mod speak;
mod talk;

pub use door::door;
pub use gate::{AsWhom, gate};
pub use keep::keep;

pub(crate) use cgroup::{RunGroup, Trees};
pub(crate) use change::Change;
pub(crate) use journal::{Ending, Exit, Record, last_alive, read as read_journal};
pub(crate) use left::{Left, MARK, end_left_over, kill_keeper};
pub(crate) use plan::{Host, Limits, MemberPlan, RunPlan};
pub(crate) use print::{numbered, page_of};
pub(crate) use space::Room;
pub(crate) use talk::{Keeping, Order};

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
