//! The parts of Kubernetes' objects that matter here, and nothing else: a cluster has tens of thousands of pods, and
//! what is not read need not be kept.

pub(crate) mod field_mask;
pub(crate) mod fields;
pub(crate) mod metadata;
pub(crate) mod node;
pub(crate) mod node_claim;
pub(crate) mod pod;
pub(crate) mod pod_outline;
pub(crate) mod projection;
pub(crate) mod resource;

pub use node::Node;
pub use node_claim::NodeClaim;
pub use pod::{ASSIGNED_NODE, EVICTION_MESSAGE, GATE, NODE_SELECTOR_ADDED, Pod, PodStatus, SEATED};
pub use resource::{Condition, is_true};
