//! What is spoken outside: Muster's manifests.
//!
//! Read in this order: a file becomes a tree that knows its lines (`tree`), a tree is read field by field
//! (`value`, `fields`), each kind of object says which fields it has (`gang`, `queue`, `pool`, `node`,
//! `topology`), and in the end all objects are held against each other (`check`). What Kubernetes is told of the
//! same kinds is in `crd`.
//!
//! What others write is read apart from that and leniently (`foreign`, `json`): pods (`pod`), groups of pods in
//! other schedulers' words (`dialects`), workloads by their owners (`workloads`), requests for room (`provisioning`), and
//! gangs made of all that (`assemble`).
//!
//! What is said back goes through `words`, so that every place that shows a verdict shows the same.
//!
//! Architecture invariant: bad input is a finding with file, line, field and reason, never a panic and never the
//! end of the reading. There is no client here, no clock and no async runtime; files are read, nothing is written.

mod finding;
mod hint;
mod instant;
mod names;

mod fields;
mod opaque;
mod tree;
mod value;

mod allowed;
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

mod foreign;
mod json;

pub mod pod;

pub mod dialects;
pub mod provisioning;
pub mod workloads;

pub mod assemble;

mod check;
mod object;
mod read;

pub mod crd;

pub mod figures;
pub mod words;

pub use finding::{Finding, Severity};
pub use foreign::foreign;
pub use gang::{Care, GangManifest, RunSpec, Template};
pub use instant::{InstantError, instant};
pub use names::{label_fault, name_fault, number_of, role_fault, spell_label, spell_name};
pub use pool::PoolManifest;
pub use provider::{AUTOSCALER_CLASS, Autoscaler, Karpenter, NodeClassRef, Provider};
pub use read::{MAX_FILE_BYTES, Manifests, read_alone, read_files, read_texts};
pub use simulated::{
    BootTimes, FailureOdds, Fault, InService, ScriptedFault, SimulatedCloud, StockOut,
};
pub use tree::count_values;
