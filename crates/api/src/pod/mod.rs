//! The parts of a pod's spec that scheduling uses.
//!
//! A pod's spec is read once into a slim [`PodSpec`] (`spec`, `affinity`), which gives three answers: the resources
//! that one such pod takes (`request`), the nodes it may run on (`constraints`), and its rules that core does not
//! support (`pod_rules`: host ports, volumes, inter-pod affinity, topology spread). Other fields are dropped.

pub(crate) mod affinity;
pub(crate) mod constraints;
pub(crate) mod lenient;
pub(crate) mod pod_rules;
pub(crate) mod request;
pub(crate) mod resources;
pub(crate) mod spec;
pub(crate) mod totals;

pub use crate::pod::affinity::{
    Affinity, LabelSelector, LabelSelectorRequirement, NodeAffinity, NodeSelector,
    NodeSelectorRequirement, NodeSelectorTerm, PodAffinity, PodAffinityTerm,
    PreferredSchedulingTerm, TopologySpreadConstraint, WeightedPodAffinityTerm,
};
pub use crate::pod::pod_rules::HostPort;
pub use crate::pod::request::GpuNames;
pub use crate::pod::resources::{Amount, Resources};
pub use crate::pod::spec::{
    ClaimRef, Container, DeviceClaim, Ephemeral, NEVER, Named, PodSpec, Port, SchedulingGroup,
    TolerationSpec, Volume, WorkloadRef,
};

pub use crate::pod::totals::Totals;
