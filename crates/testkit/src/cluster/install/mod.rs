//! Installs what a test needs into a cluster: manifests, CRDs of other projects, Helm charts.

mod apply;
mod definitions;
mod helm;

pub use apply::{ApplyError, UID_OF_OWNER, objects};
pub use helm::{HelmError, Release};
