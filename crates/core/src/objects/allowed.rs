//! Checks what a gang declares against what its queue allows.
//!
//! Everything here is declared by the tenant: the queue it names, its priority, what a delay costs, how long it takes
//! to stop. A queue bounds each of them for its own gangs and for those of the queues below it. A value above a bound
//! is not cut down in silence: the gang waits, and its verdict names the queue, the declared value and the bound.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::hardware::constraint::Term;
use crate::objects::gang::GangSpec;
use crate::units::money::Money;
use crate::units::time::Span;

/// The namespaces whose gangs may use a queue.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Namespaces {
    /// By name. A host that knows the labels of namespaces adds those that the selector matches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<Arc<str>>,
    /// By label; all requirements must hold. Matches nothing when it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<Term>,
}

/// Whether gangs that cannot be preempted may start in a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum NonPreemptible {
    /// They never start.
    Never,
    /// They start within the queue's guarantee, or on capacity that no queue is guaranteed: lent capacity can always
    /// be reclaimed.
    #[default]
    WithinGuarantee,
    /// They start wherever there is room, and what they hold of another queue's guarantee comes back when they end.
    Always,
}

/// What the gangs of a queue may declare. Nothing is bounded that is absent.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Allowed {
    /// The namespaces whose gangs may use the queue itself; those of any namespace when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Namespaces>,
    /// The highest priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_priority: Option<i32>,
    /// Whether gangs that cannot be preempted may start.
    #[serde(default, skip_serializing_if = "is_default")]
    pub non_preemptible: NonPreemptible,
    /// The highest cost of an hour of delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost_of_waiting: Option<Money>,
    /// The longest grace between notice and stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_grace: Option<Span>,
    /// The longest time a gang runs before it can be preempted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_min_runtime: Option<Span>,
    /// The longest time an order may assemble.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_provisioning_timeout: Option<Span>,
}

fn is_default(allowed: &NonPreemptible) -> bool {
    *allowed == NonPreemptible::default()
}

/// A declared value that a queue does not allow.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Excess {
    /// The queue is not for gangs of this namespace.
    Namespace,
    /// The priority is too high.
    Priority {
        /// The gang's.
        declared: i32,
        /// The queue's.
        allowed: i32,
    },
    /// The queue takes no gang that cannot be preempted.
    NonPreemptible,
    /// The declared cost of an hour of delay is too high.
    CostOfWaiting {
        /// The gang's.
        declared: Money,
        /// The queue's.
        allowed: Money,
    },
    /// A duration is too long.
    Duration {
        /// Which.
        field: Bounded,
        /// The gang's.
        declared: Span,
        /// The queue's.
        allowed: Span,
    },
}

/// A duration that a gang declares and a queue bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Bounded {
    /// `disruption.grace`.
    Grace,
    /// `disruption.minRuntime`.
    MinRuntime,
    /// `provisioning.timeout`.
    ProvisioningTimeout,
}

impl Allowed {
    /// Whether nothing is bounded beyond the default.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether gangs of a namespace may use the queue itself.
    pub fn admits(&self, namespace: &str) -> bool {
        let named = |of: &Namespaces| of.names.iter().any(|name| **name == *namespace);
        self.namespaces.as_ref().is_none_or(named)
    }

    /// These bounds, and those of `other` where these are absent. Namespaces are each queue's own.
    pub fn over(&self, other: &Self) -> Self {
        Self {
            namespaces: self.namespaces.clone(),
            max_priority: self.max_priority.or(other.max_priority),
            non_preemptible: self.non_preemptible,
            max_cost_of_waiting: self.max_cost_of_waiting.or(other.max_cost_of_waiting),
            max_grace: self.max_grace.or(other.max_grace),
            max_min_runtime: self.max_min_runtime.or(other.max_min_runtime),
            max_provisioning_timeout: self
                .max_provisioning_timeout
                .or(other.max_provisioning_timeout),
        }
    }

    /// The first declared value of a gang that is above a bound. Whether the gang may use the queue at all is not
    /// checked here.
    pub fn exceeded_by(&self, gang: &GangSpec) -> Option<Excess> {
        let GangSpec { priority, cost_of_waiting, disruption, provisioning, .. } = gang;
        if let Some(allowed) = self.max_priority.filter(|allowed| priority > allowed) {
            return Some(Excess::Priority { declared: *priority, allowed });
        }
        if !disruption.preemptible && self.non_preemptible == NonPreemptible::Never {
            return Some(Excess::NonPreemptible);
        }
        if let (Some(declared), Some(allowed)) = (*cost_of_waiting, self.max_cost_of_waiting)
            && declared > allowed
        {
            return Some(Excess::CostOfWaiting { declared, allowed });
        }
        let durations = [
            (Bounded::Grace, disruption.grace, self.max_grace),
            (Bounded::MinRuntime, disruption.min_runtime, self.max_min_runtime),
            (Bounded::ProvisioningTimeout, provisioning.timeout, self.max_provisioning_timeout),
        ];
        durations.into_iter().find_map(|(field, declared, allowed)| {
            let allowed = allowed.filter(|allowed| declared > *allowed)?;
            Some(Excess::Duration { field, declared, allowed })
        })
    }
}
