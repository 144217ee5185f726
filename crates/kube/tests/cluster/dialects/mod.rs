//! Gangs in the objects of other schedulers and operators: PodGroups, training jobs, staged pods, status written back.
//!
//! No real operator runs: the test creates what an operator would create.

mod gang_templates;
mod merged_groups;
mod operator_stages;
mod pod_groups;
mod staged_pods;
mod status_patches;
mod workloads;
