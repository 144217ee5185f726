//! Synthetic workloads: jobs drawn from a few distributions and an explicit seed.
//!
//! The same spec and seed give the same jobs, byte for byte: the generator is ChaCha8, which is the same
//! everywhere, and times are rounded to milliseconds or seconds, so that the last bit of a platform's `exp`
//! does not show. Scheduling is not here.

mod arrival;
mod generate;
mod preset;
mod spec;

pub use preset::{Preset, UnknownPreset};
pub use spec::{Arrival, Topology, Weighted, WorkloadError, WorkloadSpec};
