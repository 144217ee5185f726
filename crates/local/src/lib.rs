//! The embedded host: a control plane in one process with one database; workers are real processes.
//!
//! `daemon` is the control plane: it owns the World and runs the planner. `keeper` is the process between the control plane
//! and the workers of one gang; it outlives the control plane. `store` is the database. `intake` reads manifests, `nodes`
//! describes this machine and simulated clouds. [`Local`] is the handle of a running control plane.
//!
//! **Architecture invariant:** every side effect is written to the database before it happens. *Test:* `tests/it/kills.rs`.

mod host;

mod daemon;
mod keeper;

mod intake;
mod logs;
mod nodes;
mod store;
mod system;

pub mod why;

pub use daemon::retention::finished_gangs::Keep;
pub use daemon::state::{Watch, Watcher};
pub use host::local::{EndError, Local, Options, StartError};
pub use intake::manifests::{Intake, check_files, read_files};
#[doc(hidden)]
pub use keeper::fuzzing;
pub use keeper::processes::gate::{MemberIdentity, gate};
pub use keeper::processes::mpi_door::door;
pub use keeper::run::keeper::keep;
pub use nodes::machine::{Machine, this_machine};
pub use nodes::simulated_cloud::cloud_of;
pub use store::database::StoreError;
pub use system::file_permissions::{directory as make_private_directory, make_files_private};
pub use system::unix_user::{check_user, may_change_user};
