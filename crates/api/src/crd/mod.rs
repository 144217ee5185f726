//! Muster's kinds as CustomResourceDefinitions: types with a schema, and the definitions generated from them.
//!
//! Read in this order: the single values (`values`), the conditions that several kinds share (`condition`), the kinds
//! (`topology`, `queue`, `pool`, `gang`, `order`), and how a type becomes a CustomResourceDefinition (`structural`,
//! `definition`).
//!
//! The doc comments of these types are the descriptions that `kubectl explain` prints.
//!
//! The manifest readers stay authoritative: they report more, and with the line. The schemas keep an API server from
//! storing what the readers would reject, as far as a schema can. A test compares the fields of both. There is no
//! `Node`: a cluster has its own.

mod values;

mod condition;

mod topology;

mod queue;

mod pool;

mod gang;
mod order;

mod structural;

mod definition;

#[cfg(test)]
mod tests;

pub use crate::crd::condition::{Condition, ConditionStatus};
pub use crate::crd::definition::{Column, Definition, GROUP, Resource, VERSION, definitions};
pub use crate::crd::gang::conditions::{ADMITTED, FINISHED, PROVISIONED, RUNNING, gang_conditions};
pub use crate::crd::gang::constraints::{
    Affinity, Effect, Expression, NodeAffinity, NodeSelector, Operator, Preference, Taint,
    TaintOperator, Term, Toleration,
};
pub use crate::crd::gang::disruption::{Checkpoint, Disruption, Signal};
pub use crate::crd::gang::placement::Placement;
pub use crate::crd::gang::role::{GpuRequirements, PodTemplate, Role, Run};
pub use crate::crd::gang::spec::{
    Closeness, Gang, GangSpec, OnFailure, Provisioning, ProvisioningMode, Scaling,
};
pub use crate::crd::gang::status::{GangPhase, GangStatus, Members};
pub use crate::crd::order::spec::{
    GangRef, Order, OrderClaim, OrderPlacement, OrderSpec, PreemptedPlacement, Preemption, StopFor,
};
pub use crate::crd::order::status::{OrderPhase, OrderStatus};
pub use crate::crd::pool::offering::{Devices, Offering};
pub use crate::crd::pool::proactive::{
    Buffer, Consolidate, Forecast, Schedule, Spare, Timeouts, Warm,
};
pub use crate::crd::pool::provider::{Autoscaler, Karpenter, NodeClassRef, Nothing, Provider};
pub use crate::crd::pool::simulated::{
    Boot, Failures, Fault, InService, ScriptedFault, Simulated, StockOut,
};
pub use crate::crd::pool::spec::{Limits, Pool, PoolMode, PoolSpec};
pub use crate::crd::pool::status::{OfferingStatus, PoolStatus, Target};
pub use crate::crd::queue::{
    LabelSelector, Namespaces, NonPreemptible, Queue, QueueSpec, QueueStatus,
};
pub use crate::crd::topology::{Level, Topology, TopologySpec, TopologyStatus};
pub use crate::crd::values::amount::{Amount, Amounts};
pub use crate::crd::values::duration::{Duration, DurationAboveZero};
pub use crate::crd::values::stamp::Stamp;
pub use crate::crd::values::text::{
    GpuKey, Instant, Key, Label, LabelValue, Name, OfferingName, Parameter, Text,
};
