//! Muster's interface to the outside: manifests, CustomResourceDefinitions, other systems' objects, and messages.
//!
//! Manifests are read strictly: `yaml` parses a file into values with their lines, `manifest` reads the fields of each
//! kind, and `read` goes through files and checks all objects against each other. `crd` has the same kinds as
//! CustomResourceDefinitions.
//!
//! Other systems' objects are read leniently (`foreign`): pods (`pod`), groups of pods as other schedulers declare them
//! (`dialects`), workloads that own pods (`workloads`) and requests for capacity (`provisioning`); `assemble` makes
//! gangs of all that.
//!
//! `words` has the sentences that users read, so that the same verdict has the same words everywhere.
//!
//! Architecture invariant: bad input is a finding with file, line, field and reason, never a panic and never the end of
//! the reading. There is no client, no clock and no async runtime here; files are read, nothing is written.

mod yaml;

mod manifest;

mod read;

pub mod crd;

mod foreign;

pub mod pod;

pub mod dialects;
pub mod workloads;

pub mod provisioning;

pub mod assemble;
pub mod words;

pub use crate::foreign::files::foreign;
pub use crate::manifest::gang::gang_spec::{GangManifest, RunPolicy, RunSpec, Template};
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
