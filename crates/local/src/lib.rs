//! The embedded host: a control plane in one process, with one database, whose workers are real processes.
//!
//! `daemon` is the control plane: it owns the World and decides. `keeper` is the process that stands between it and the
//! workers of one gang, and outlives it. `store` is the database. `intake` reads manifests, `nodes` says what there is to
//! run on. [`Local`] is what others hold of a control plane that runs.
//!
//! **Architecture invariant:** what is done was written down before. *Test:* `tests/it/kills.rs`.

mod clock;
mod daemon;
mod disk;
mod environment;
mod intake;
mod keeper;
mod local;
mod logs;
mod nodes;
mod private;
mod reading;
mod scarcity;
mod store;
mod supervise;
mod threads;
mod user;

pub mod why;

pub use daemon::{Keep, Watch, Watcher};
pub use intake::{Intake, check_files, read_files};
#[doc(hidden)]
pub use keeper::fuzzing;
pub use keeper::{AsWhom, door, gate, keep};
pub use local::{EndError, Local, Options, StartError};
pub use nodes::{Machine, cloud_of, this_machine};
pub use private::{directory as private_directory, keep_private};
pub use store::StoreError;
pub use user::{check_user, may_change_user};

/// The database, in a data directory.
const DATABASE: &str = "muster.db";
/// Locked while a control plane uses the data directory.
const LOCK: &str = "lock";
