//! The record of one gang: everything the host remembers of it between two cycles.
//!
//! A record exists as long as the gang has pods, or its source object exists. The gang's phase is not here: the World has
//! it, and [`crate::schedule::phase`] reconciles it with the pods.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use muster_core::event::Refusal;
use muster_core::gang::GangSpec;

use crate::cache::store::Key;
use crate::constraints::pod_constraints::PodConstraints;
use crate::constraints::volumes::binding::VolumeBinding;
use crate::gang::api_refusal::ApiRefusal;
use crate::gang::identity::GangSource;
use crate::gang::pod_templates::create_backoff::CreateBackoff;
use crate::gang::tenancy::trusted_annotations::Released;
use crate::schedule::owner_resize::Size;

/// What the host remembers of one gang.
#[derive(Debug)]
pub(crate) struct GangRecord {
    /// What makes its pods one gang.
    pub(crate) source: GangSource,
    /// All its pods, also those that are over.
    pub(crate) pods: BTreeSet<Key>,
    /// The UID of the controlling workload object, where one stands for the gang.
    pub(crate) owner_uid: Option<Arc<str>>,
    /// Pods of a later gang of the same name, which starts when no pod of this one is left.
    pub(crate) successors: BTreeSet<Key>,
    /// The spec that the World was last given.
    pub(crate) submitted_spec: Option<GangSpec>,
    /// The role of each pod, by index in the spec.
    pub(crate) pod_roles: BTreeMap<Key, u16>,
    /// How many members each role may still have, by index in the spec. Empty where that is not known.
    pub(crate) role_sizes: BTreeMap<u16, Size>,
    /// Since when it has seats above its minimum for which no member exists.
    pub(crate) empty_seats_since: Option<Instant>,
    /// The rank of each pod within its role: low ranks are bound first and evicted last.
    pub(crate) pod_ranks: BTreeMap<Key, u32>,
    /// The nodes that pods were bound or released to, until the pods are observed there.
    pub(crate) assigned_nodes: BTreeMap<Key, Arc<str>>,
    /// Pods whose scheduling gate Muster has removed.
    pub(crate) released: BTreeMap<Key, Released>,
    /// Whether some of its pods are on nodes beyond its queue's limits: see [`crate::schedule::bound_elsewhere`].
    pub(crate) is_bound_beyond_limits: bool,
    /// Whether the Event for that was recorded.
    pub(crate) is_limit_event_recorded: bool,
    /// Whether its placement is in its status, so that pods may be bound.
    pub(crate) placement_written: bool,
    /// Writes of its placement that are under way: only the last one counts.
    pub(crate) placement_writes_pending: u32,
    /// Whether a user wrote a Gang object for it, which may be deleted by now.
    pub(crate) has_user_gang: bool,
    /// Pods that are being created from its templates.
    pub(crate) creating_pods: BTreeSet<Key>,
    /// How many of them are created at a time, and the backoff after a refusal.
    pub(crate) create_backoff: CreateBackoff,
    /// Whether the API server refused to create one of them.
    pub(crate) create_failed: bool,
    /// Pods whose deletion was requested.
    pub(crate) deleting_pods: BTreeSet<Key>,
    /// Why it cannot be submitted to the World, and since when.
    pub(crate) blocked: Option<(String, Instant)>,
    /// The World's refusal, if that is why.
    pub(crate) world_refusal: Option<Refusal>,
    /// The resolved constraints of each pod, as of now or as of its placement.
    pub(crate) pod_constraints: BTreeMap<Key, PodConstraints>,
    /// Whether its preferences were resolved again since it was last reconciled.
    pub(crate) preferences_refreshed: bool,
    /// Why it fits nowhere now, although it was submitted.
    pub(crate) wait_reason: Option<String>,
    /// The volumes that must be bound before its pods are.
    pub(crate) volume_binding: Option<VolumeBinding>,
    /// Since when its owner is asked to create its pods, for which seats are reserved.
    pub(crate) members_requested_at: Option<Instant>,
    /// Since when released pods wait for another scheduler to bind them.
    pub(crate) external_binding_since: Option<Instant>,
    /// Whether pods were missing when the planner admitted it.
    pub(crate) pods_missing_at_admission: bool,
    /// Whether its members are no longer those that its seats were taken for.
    pub(crate) differs_from_seats: bool,
    /// Since when it is being bound and not all of its minimum is.
    pub(crate) binding_since: Option<Instant>,
    /// The API server's refusal to bind it, with its backoff.
    pub(crate) api_refusal: Option<ApiRefusal>,
    /// How often it had seats and did not start, and when that last was so.
    pub(crate) unused_admissions: Option<(u32, Instant)>,
    /// Whether its minimum was bound at some time since it has its seats.
    pub(crate) was_fully_bound: bool,
    /// Whether the submitted spec is built from its Job's template and not from pods.
    pub(crate) planned_from_template: bool,
    /// Members that it is sized for and that do not exist.
    pub(crate) missing_members: u32,
    /// Since when none of its pods is left and others are to be created: one stage is over, the next has not begun.
    pub(crate) between_stages_since: Option<Instant>,
    /// Whether its Job was observed unsuspended since the gang has its seats.
    pub(crate) job_seen_running: bool,
    /// The value of `suspend` that was last requested for its Job.
    pub(crate) requested_suspend: Option<bool>,
}

impl GangRecord {
    pub(crate) fn new(source: GangSource) -> Self {
        Self {
            source,
            pods: BTreeSet::new(),
            owner_uid: None,
            successors: BTreeSet::new(),
            submitted_spec: None,
            pod_roles: BTreeMap::new(),
            role_sizes: BTreeMap::new(),
            empty_seats_since: None,
            pod_ranks: BTreeMap::new(),
            assigned_nodes: BTreeMap::new(),
            released: BTreeMap::new(),
            is_bound_beyond_limits: false,
            is_limit_event_recorded: false,
            placement_written: false,
            placement_writes_pending: 0,
            has_user_gang: false,
            creating_pods: BTreeSet::new(),
            create_backoff: CreateBackoff::default(),
            create_failed: false,
            deleting_pods: BTreeSet::new(),
            blocked: None,
            world_refusal: None,
            pod_constraints: BTreeMap::new(),
            preferences_refreshed: false,
            wait_reason: None,
            volume_binding: None,
            members_requested_at: None,
            external_binding_since: None,
            pods_missing_at_admission: false,
            differs_from_seats: false,
            binding_since: None,
            api_refusal: None,
            unused_admissions: None,
            was_fully_bound: false,
            planned_from_template: false,
            missing_members: 0,
            between_stages_since: None,
            job_seen_running: false,
            requested_suspend: None,
        }
    }

    /// Whether pods of this owner belong to another gang than this.
    pub(crate) fn has_other_owner(&self, owner_uid: &Option<Arc<str>>) -> bool {
        owner_uid.is_some() && self.owner_uid.is_some() && self.owner_uid != *owner_uid
    }

    /// A pod's rank within its role; the last for a pod that has none.
    pub(crate) fn rank(&self, pod: &str) -> u32 {
        self.pod_ranks.get(pod).copied().unwrap_or(u32::MAX)
    }
}
