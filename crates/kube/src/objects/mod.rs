//! The parts of Kubernetes objects that Muster reads: a cluster has tens of thousands of pods, and fields that are not read
//! are not kept.
//!
//! `pod`, `node` and `node_claim` are typed; every other kind is a dynamic object, projected by the mask of its `fields`.
//! Nothing here is written back: patches are built where the write is decided.

pub(crate) mod pod;
pub(crate) mod pod_outline;

pub(crate) mod node;
pub(crate) mod node_claim;

pub(crate) mod metadata;
pub(crate) mod resource;

pub(crate) mod field_mask;
pub(crate) mod fields;
pub(crate) mod projection;

pub use node::Node;
pub use node_claim::NodeClaim;
pub use pod::{ASSIGNED_NODE, EVICTION_MESSAGE, GATE, NODE_SELECTOR_ADDED, Pod, PodStatus, SEATED};
pub use resource::{Condition, is_true};
