//! The configuration of the host, with its defaults.

use muster_api::pod::GpuNames;
use muster_core::time::Span;
use muster_plan::Policy;

use crate::api::watch::health::WatchHealth;
use crate::api::watch::watches::Bounds;
use crate::features::Disabled;
use crate::gang::tenancy::queue_access::default_allowance;
use crate::lease::election::LeaseConfig;
use crate::objects::pod::Pod;
#[cfg(any(test, feature = "cluster"))]
use crate::recover::injected_faults::Fault;

/// Cloud volumes bind within some ten seconds. One that takes longer than this most likely has a selected node that it
/// cannot be attached to.
const VOLUME_BINDING_TIMEOUT: Span = Span::mins(2);
/// A binding takes milliseconds, and a binding that the API server refuses may succeed when it is retried.
const BIND_TIMEOUT: Span = Span::mins(2);
/// Other schedulers take milliseconds, and restart within a minute or two.
const HANDOVER_TIMEOUT: Span = Span::mins(5);
/// As long as Cluster Autoscaler keeps a booking, so that both behave alike.
const BOOKING_TTL: Span = Span::mins(10);

/// The configuration of the host.
#[derive(Clone, Debug)]
pub struct Config {
    /// Muster binds pods whose `schedulerName` is one of these.
    pub scheduler_names: Vec<String>,
    /// Resources that are GPUs although their names do not end in `/gpu`.
    pub gpus: GpuNames,
    /// The planner's policy.
    pub policy: Policy,
    /// The namespace of Muster's own namespaced objects.
    pub namespace: String,
    /// The lease of leader election; none when there is only one replica.
    pub lease: Option<LeaseConfig>,
    /// A gang that has seats starts over when its volumes are not bound within this time.
    pub volume_binding_timeout: Span,
    /// A gang starts over when it is bound only in part for this long.
    pub bind_timeout: Span,
    /// A gang starts over when another scheduler has not bound all of it this long after its gates were removed.
    pub handover_timeout: Span,
    /// How long capacity booked by a ProvisioningRequest is kept for its pods.
    pub booking_ttl: Span,
    /// Whether the annotation `muster.sh/user` can be trusted: an admission policy stamps it on created objects.
    pub trust_users: bool,
    /// Features that are off, because the controller has no rights for them.
    pub disabled: Disabled,
    /// Faults that a test injects.
    #[cfg(any(test, feature = "cluster"))]
    pub faults: Vec<Fault>,
    /// The most members of one gang.
    pub max_gang_members: u32,
    /// The most gangs of one namespace that are planned at one time.
    pub max_gangs_per_namespace: u32,
    /// Size limits for observed objects.
    pub bounds: Bounds,
    /// The health of the watch of each kind, for metrics.
    pub watches: WatchHealth,
}

/// Each member costs memory and an entry in a status, and a status holds about fourteen thousand entries.
pub const MAX_GANG_MEMBERS: u32 = 10_000;
/// Each gang costs planning time in every cycle. A namespace with more than this has gangs that could not start today.
pub const MAX_GANGS_PER_NAMESPACE: u32 = 10_000;

impl Default for Config {
    fn default() -> Self {
        Self {
            scheduler_names: vec!["muster".to_owned()],
            gpus: GpuNames::default(),
            policy: Self::policy(),
            namespace: "muster-system".to_owned(),
            lease: None,
            volume_binding_timeout: VOLUME_BINDING_TIMEOUT,
            bind_timeout: BIND_TIMEOUT,
            handover_timeout: HANDOVER_TIMEOUT,
            booking_ttl: BOOKING_TTL,
            trust_users: false,
            disabled: Disabled::default(),
            #[cfg(any(test, feature = "cluster"))]
            faults: Vec::new(),
            max_gang_members: MAX_GANG_MEMBERS,
            max_gangs_per_namespace: MAX_GANGS_PER_NAMESPACE,
            bounds: Bounds::default(),
            watches: WatchHealth::default(),
        }
    }
}

impl Config {
    /// The default policy, for tenants that do not trust each other.
    pub fn policy() -> Policy {
        Policy { unsaid: default_allowance(), ..Policy::default() }
    }

    /// Whether Muster schedules a pod: it binds the pod, or removes its gate for another scheduler.
    pub fn serves(&self, pod: &Pod) -> bool {
        self.binds(pod) || pod.has_gate()
    }

    /// Whether Muster binds a pod.
    pub fn binds(&self, pod: &Pod) -> bool {
        self.serves_name(pod.spec.scheduler_name.as_deref().unwrap_or_default())
    }

    /// Whether a `schedulerName` is one of Muster's.
    pub(crate) fn serves_name(&self, scheduler: &str) -> bool {
        self.scheduler_names.iter().any(|name| name == scheduler)
    }
}
