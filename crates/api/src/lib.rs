//! What is spoken outside: Muster's manifests.
//!
//! Read in this order: a file becomes a tree that knows its lines (`tree`), a tree is read field by field
//! (`value`, `fields`), each kind of object says which fields it has (`gang`, `queue`, `pool`, `node`,
//! `topology`), and in the end all objects are held against each other (`check`).
//!
//! Architecture invariant: bad input is a finding with file, line, field and reason, never a panic and never the
//! end of the reading. There is no client here, no clock and no async runtime; files are read, nothing is written.

mod finding;
mod hint;
mod instant;
mod names;

mod fields;
mod tree;
mod value;

mod amounts;
mod constraints;
mod quota;

mod disruption;
mod gang;
mod node;
mod offering;
mod pool;
mod proactive;
mod provider;
mod queue;
mod role;
mod scaling;
mod simulated;
mod topology;

mod check;
mod object;
mod read;

pub use finding::{Finding, Severity};
pub use gang::{GangManifest, RunSpec};
pub use instant::{InstantError, instant};
pub use pool::PoolManifest;
pub use provider::{NodeClassRef, Provider};
pub use read::{MAX_FILE_BYTES, Manifests, read_files, read_texts};
pub use simulated::{
    BootTimes, FailureOdds, Fault, InService, ScriptedFault, SimulatedCloud, StockOut,
};
