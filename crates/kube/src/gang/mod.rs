//! Turns observed objects into gangs: which pods form a gang, and the spec the planner gets for it.
//!
//! In reading order: the identity and the record of a gang, the registry, the source objects, the build itself; then the
//! special cases, one file each. Not here: binding, evicting and the phases of a gang, which are in `schedule`.

pub(crate) mod api_refusal;
pub(crate) mod build;
pub(crate) mod failed_indexes;
pub(crate) mod identity;
pub(crate) mod merged_groups;
pub(crate) mod missing_pods;
pub(crate) mod pod_templates;
pub(crate) mod record;
pub(crate) mod recreated;
pub(crate) mod registry;
pub(crate) mod source;
pub(crate) mod staged_pods;
pub(crate) mod suspended_job;
pub(crate) mod tenancy;
