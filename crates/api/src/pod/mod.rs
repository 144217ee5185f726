//! Pods, as far as scheduling is concerned.
//!
//! A pod's spec is read once into a slim [`PodSpec`] (`spec`, `affinity`), and asked three things: what one such
//! pod takes (`request`), where it may run (`constraints`), and what else it insists on that core has no word for
//! (`ties`). What it says beyond that is not kept.

pub(crate) mod affinity;
pub(crate) mod constraints;
pub(crate) mod lenient;
pub(crate) mod pod_rules;
pub(crate) mod request;
pub(crate) mod resources;
pub(crate) mod spec;
pub(crate) mod totals;

pub use crate::pod::affinity::{
    Affinity, LabelExpression, LabelSelector, NodeAffinity, NodeExpression, NodeSelector, NodeTerm,
    PodAffinity, PodTerm, PreferredNodes, PreferredPods, SpreadConstraint,
};
pub use crate::pod::pod_rules::HostPort;
pub use crate::pod::request::GpuNames;
pub use crate::pod::resources::{Amount, Resources};
pub use crate::pod::spec::{
    ClaimRef, Container, DeviceClaim, Ephemeral, NEVER, Named, PodSpec, Port, SchedulingGroup,
    TolerationSpec, Volume, WorkloadRef,
};

pub use crate::pod::totals::Totals;
