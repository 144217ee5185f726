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

pub mod assemble;
pub mod crd;
pub mod dialects;
mod foreign;
mod manifest;
pub mod pod;
pub mod provisioning;
mod read;
pub mod words;
pub mod workloads;
mod yaml;

pub use crate::foreign::files::foreign;
pub use crate::manifest::gang::gang_spec::{Care, GangManifest, RunSpec, Template};
pub use crate::manifest::pool::pool_spec::PoolManifest;
pub use crate::manifest::pool::provider::{
    AUTOSCALER_CLASS, Autoscaler, Karpenter, NodeClassRef, Provider,
};
pub use crate::manifest::pool::simulated::{
    BootTimes, FailureOdds, Fault, InService, ScriptedFault, SimulatedCloud, StockOut,
};
pub use crate::read::files::{MAX_FILE_BYTES, Manifests, read_alone, read_files, read_texts};
pub use crate::read::finding::{Finding, Severity};
pub use crate::words::figures;
pub use crate::yaml::instant::{InstantError, instant};
pub use crate::yaml::names::{
    label_fault, name_fault, number_of, role_fault, spell_label, spell_name,
};
pub use crate::yaml::tree::count_values;
