//! Groups of pods as other schedulers declare them, translated into common terms.
//!
//! One file per dialect: each knows which label or annotation of a pod names its group, which object contains the
//! group's terms, and how the gang's state is written into that object. Common to all are only a pod's group
//! ([`group_of`]), a group's [`Terms`], and the [`status()`] that is written back. Nothing is fetched, watched
//! or written here.

mod dialect;

mod labels;
mod terms;

mod muster;
mod native;
mod scheduler_plugins;

mod koordinator;
mod volcano;
mod volcano_queue;

mod kube_batch;

mod kai;
mod kai_queue;

mod status;

pub use dialect::{
    Dialect, GroupKind, GroupRef, group_of, is_sized_by_resources, kinds, merged_groups, pod_terms,
    role_of, terms, terms_of,
};
pub use status::{State, StatusPatch, status};
pub use terms::{Level, Terms};
pub use volcano_queue::{QUEUES, QueueTerms, queue};
