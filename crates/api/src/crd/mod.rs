//! Muster's kinds as Kubernetes is told of them: types with a schema, and the definitions made from those.
//!
//! Read in this order: what a single value may be (`text`, `duration`, `amount`, `stamp`), what several kinds share
//! (`constraints`, `condition`), the kinds (`topology`, `queue`, `pool`, `gang`, `order`), and how a type becomes a
//! CustomResourceDefinition (`structural`, `definition`).
//!
//! The readers of manifests stay the judges: they say more, and with the line. What is here keeps an API server from
//! storing what they would refuse, as far as a schema can. A test holds the fields of both against each other.
//! There is no `Node`: a cluster has its own.

mod amount;
mod duration;
mod stamp;
mod text;

mod condition;
mod constraints;

mod disruption;
mod gang;
mod gang_conditions;
mod gang_status;
mod offering;
mod order;
mod order_status;
mod placement;
mod pool;
mod pool_status;
mod proactive;
mod provider;
mod queue;
mod role;
mod simulated;
mod topology;

mod definition;
mod structural;

#[cfg(test)]
mod tests;

pub use amount::{Amount, Amounts};
pub use condition::{Condition, ConditionStatus};
pub use constraints::{
    Affinity, Effect, Expression, NodeAffinity, NodeSelector, Operator, Preference, Taint,
    TaintOperator, Term, Toleration,
};
pub use definition::{Column, Definition, GROUP, Resource, VERSION, definitions};
pub use disruption::{Checkpoint, Disruption, Signal};
pub use duration::{Duration, DurationAboveZero};
pub use gang::{Closeness, Gang, GangSpec, OnFailure, Provisioning, ProvisioningMode, Scaling};
pub use gang_conditions::{ADMITTED, FINISHED, PROVISIONED, RUNNING, gang_conditions};
pub use gang_status::{GangPhase, GangStatus, Members};
pub use offering::{Devices, Offering};
pub use order::{
    GangRef, Order, OrderClaim, OrderPlacement, OrderSpec, PreemptedPlacement, Preemption, StopFor,
};
pub use order_status::{OrderPhase, OrderStatus};
pub use placement::Placement;
pub use pool::{Limits, Pool, PoolMode, PoolSpec};
pub use pool_status::{OfferingStatus, PoolStatus, Target};
pub use proactive::{Buffer, Consolidate, Forecast, Schedule, Spare, Timeouts, Warm};
pub use provider::{Autoscaler, Karpenter, NodeClassRef, Nothing, Provider};
pub use queue::{LabelSelector, Namespaces, NonPreemptible, Queue, QueueSpec, QueueStatus};
pub use role::{GpuWish, PodTemplate, Role, Run};
pub use simulated::{Boot, Failures, Fault, InService, ScriptedFault, Simulated, StockOut};
pub use stamp::Stamp;
pub use text::{GpuKey, Instant, Key, Label, LabelValue, Name, OfferingName, Parameter, Text};
pub use topology::{Level, Topology, TopologySpec, TopologyStatus};
