//! Pods, as far as scheduling is concerned.
//!
//! A pod's spec is read once into a slim [`PodSpec`] (`spec`, `affinity`), and asked three things: what one such
//! pod takes (`request`), where it may run (`constraints`), and what else it insists on that core has no word for
//! (`ties`). What it says beyond that is not kept.

mod affinity;
mod constraints;
mod lenient;
mod request;
mod resources;
mod spec;
mod ties;
mod totals;

pub use affinity::{
    Affinity, LabelExpression, LabelSelector, NodeAffinity, NodeExpression, NodeSelector, NodeTerm,
    PodAffinity, PodTerm, PreferredNodes, PreferredPods, SpreadConstraint,
};
pub use request::GpuNames;
pub use resources::{Amount, Resources};
pub use spec::{
    ClaimRef, Container, DeviceClaim, Ephemeral, NEVER, Named, PodSpec, Port, SchedulingGroup,
    TolerationSpec, Volume, WorkloadRef,
};
pub use ties::HostPort;

pub use totals::Totals;

pub(crate) use totals::listed;
