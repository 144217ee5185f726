//! The state of the host: one task that keeps the World in step with observed objects, asks the planner and executes its
//! decisions.
//!
//! The host never waits for a request. Writes are tasks of their own; their results are observed like every other change, or
//! come as an [`Outcome`] through a channel where there is nothing to observe.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use kube::api::{Api, DynamicObject};
use muster_core::id::{GangId, OrderId};
use muster_core::node::NodeSpec;
use muster_core::time::Time;
use muster_core::topology::Levels;
use muster_core::verdict::Verdict;
use muster_core::{Event, World};
use muster_forecast::Forecaster;
use muster_plan::Policy;
use rustc_hash::FxHashMap;
use tokio::sync::{Notify, mpsc};

use crate::api::writer::ApiWriter;
use crate::cache::cluster_cache::ClusterCache;
use crate::cache::kinds::KindRole;
use crate::cache::node_usage::ExcessUsage;
use crate::cache::watched_objects::Sources;
use crate::clock::Clock;
use crate::config::Config;
use crate::constraints::index::ConstraintIndex;
use crate::effects::ordered::OrderedWrites;
use crate::effects::outcome::Outcome;
use crate::gang::registry::GangRegistry;
use crate::gang::tenancy::namespace_limits::NamespaceGangCounts;
use crate::provision::idle_nodes::IdleNodes;
use crate::provision::node_claim_create::PendingClaims;
use crate::provision::pools::DeclaredPool;
use crate::provision::requests_issued::registry::IssuedRequests;
use crate::provision::requests_served::registry::ServedRequests;
use crate::recover::learned::LearnedState;
use crate::recover::quarantine::{Quarantine, WorkItem};
use crate::status::accepted::RejectedObjects;
use crate::status::events::EventRecorder;
use crate::status::gang::WrittenStatus;
use crate::status::omitted_objects::OmittedObjects;
use crate::status::pools_and_queues::SupplyStatus;

/// Nodes and gangs that must be reconciled.
#[derive(Debug, Default)]
pub(crate) struct Dirty {
    pub(crate) nodes: BTreeSet<Arc<str>>,
    pub(crate) gangs: BTreeSet<Arc<str>>,
}

pub(crate) struct Host {
    pub(crate) config: Config,
    pub(crate) clock: Clock,
    pub(crate) cache: ClusterCache,
    pub(crate) sources: Sources,
    pub(crate) world: World,
    pub(crate) policy: Policy,
    pub(crate) pools: BTreeMap<Arc<str>, DeclaredPool>,
    pub(crate) rejected_objects: RejectedObjects,
    /// Objects that are omitted.
    pub(crate) omitted_objects: OmittedObjects,
    pub(crate) gangs: GangRegistry,
    pub(crate) constraints: ConstraintIndex,
    pub(crate) served_requests: ServedRequests,
    pub(crate) issued_requests: IssuedRequests,
    /// The order that assembles for each gang.
    pub(crate) order_by_gang: BTreeMap<Arc<str>, OrderId>,
    /// Orders with victims that are not stored yet.
    pub(crate) orders_not_written: BTreeSet<OrderId>,
    pub(crate) pending_claims: PendingClaims,
    pub(crate) verdicts: Vec<(GangId, Verdict)>,
    /// Start times of gangs that have a reservation.
    pub(crate) expected_starts: BTreeMap<GangId, Time>,
    pub(crate) written_status: WrittenStatus,
    /// Gangs submitted since Gang objects were last created: the object is created with the placement, if there is one.
    pub(crate) gangs_without_object: BTreeSet<Arc<str>>,
    /// Whether a write was deferred because its object changes too often.
    pub(crate) has_deferred_writes: bool,
    /// Nodes as the World has them: most changes of a node are heartbeats.
    pub(crate) seen_nodes: FxHashMap<Arc<str>, NodeSpec>,
    /// Nodes on which pods use more than the seats there account for.
    pub(crate) excess_usage: ExcessUsage,
    /// Gangs with pods on nodes beyond their queues' limits, and when the limits were last checked again.
    pub(crate) bound_elsewhere: BTreeSet<Arc<str>>,
    pub(crate) bound_elsewhere_checked_at: Option<Instant>,
    pub(crate) gang_counts: NamespaceGangCounts,
    pub(crate) dirty: Dirty,
    /// Objects that are not handled because they make the host panic.
    pub(crate) quarantine: Quarantine,
    /// The object that is being handled, which a panic is attributed to.
    pub(crate) current_item: Option<WorkItem>,
    /// Gangs reconciled since the planner last returned.
    pub(crate) unplanned: BTreeSet<Arc<str>>,
    /// Gangs reconciled too often in one cycle, which are requeued after a while.
    pub(crate) requeued: BTreeSet<Arc<str>>,
    pub(crate) writer: ApiWriter,
    pub(crate) events: EventRecorder,
    pub(crate) ordered_writes: OrderedWrites,
    pub(crate) supply_status: SupplyStatus,
    pub(crate) idle_nodes: IdleNodes,
    pub(crate) learned: LearnedState,
    pub(crate) forecaster: Forecaster,
    pub(crate) outcomes: mpsc::UnboundedSender<Outcome>,
    /// Notified when a gang needs a kind that is not watched yet.
    pub(crate) rediscover: Arc<Notify>,
    /// Whether the World must be rebuilt from all objects.
    pub(crate) must_rebuild: bool,
    /// Whether the World has changed since the last plan.
    pub(crate) world_changed: bool,
    /// When the planner wants to run again.
    pub(crate) wake: Option<Time>,
}

impl Host {
    /// A host that has observed nothing yet.
    pub(crate) fn new(
        config: &Config,
        writer: ApiWriter,
        outcomes: mpsc::UnboundedSender<Outcome>,
    ) -> Self {
        let identity = config.lease.as_ref().map(|lease| lease.identity.clone());
        Self {
            config: config.clone(),
            clock: Clock::new(),
            cache: ClusterCache::default(),
            sources: Sources::default(),
            world: World::new(Levels::default()),
            policy: config.policy.clone(),
            pools: BTreeMap::new(),
            rejected_objects: RejectedObjects::new(),
            omitted_objects: OmittedObjects::default(),
            gangs: GangRegistry::default(),
            constraints: ConstraintIndex::default(),
            served_requests: ServedRequests::default(),
            issued_requests: IssuedRequests::default(),
            order_by_gang: BTreeMap::new(),
            orders_not_written: BTreeSet::new(),
            pending_claims: PendingClaims::default(),
            verdicts: Vec::new(),
            expected_starts: BTreeMap::new(),
            written_status: WrittenStatus::default(),
            gangs_without_object: BTreeSet::new(),
            has_deferred_writes: false,
            seen_nodes: FxHashMap::default(),
            excess_usage: ExcessUsage::new(),
            bound_elsewhere: BTreeSet::new(),
            bound_elsewhere_checked_at: None,
            gang_counts: NamespaceGangCounts::default(),
            dirty: Dirty::default(),
            quarantine: Quarantine::default(),
            current_item: None,
            unplanned: BTreeSet::new(),
            requeued: BTreeSet::new(),
            events: EventRecorder::new(writer.client.clone(), identity),
            writer,
            ordered_writes: OrderedWrites::default(),
            supply_status: SupplyStatus::default(),
            idle_nodes: IdleNodes::default(),
            learned: LearnedState::default(),
            forecaster: Forecaster::default(),
            outcomes,
            rediscover: Arc::default(),
            must_rebuild: false,
            world_changed: false,
            wake: None,
        }
    }

    /// Unix time.
    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    /// Applies an event to the World. Returns whether the World accepted it.
    pub(crate) fn apply_event(&mut self, event: &Event) -> bool {
        match self.world.apply(self.now(), event) {
            Ok(()) => {
                self.world_changed = true;
                if event.tells_of_offerings() {
                    self.supply_status.write_soon();
                }
                true
            }
            Err(refusal) => {
                tracing::warn!(%refusal, ?event, "the World refuses an event");
                false
            }
        }
    }

    /// The API of a cluster-wide kind, if the API server serves it.
    pub(crate) fn api(&self, kind_role: KindRole) -> Option<Api<DynamicObject>> {
        let kind = self.sources.resource(kind_role)?;
        Some(Api::all_with(self.writer.client.clone(), kind))
    }
}
