pub(crate) mod dialect;
pub(crate) mod kai;
pub(crate) mod kai_queue;
pub(crate) mod koordinator;
pub(crate) mod kube_batch;
pub(crate) mod labels;
pub(crate) mod muster;
pub(crate) mod native;
pub(crate) mod scheduler_plugins;
pub(crate) mod status;
pub(crate) mod terms;
pub(crate) mod volcano;
pub(crate) mod volcano_queue;

pub use dialect::{
    Dialect, GroupKind, GroupRef, group_of, is_sized_by_resources, joined, kinds, pod_terms,
    role_of, terms, terms_of,
};
pub use status::{State, StatusPatch, status};
pub use terms::{Level, Terms};
pub use volcano_queue::{QUEUES, QueueTerms, queue};
