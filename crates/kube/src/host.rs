//! The host: one task that holds the World against what is seen, asks the planner, and hands out what it decides.
//!
//! It never waits for a request. Whatever takes time is done by tasks of its own, and what comes of it is seen like
//! everything else, or told through a channel when there is nothing to see.

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
use crate::cache::watched_objects::{KnownPool, Sources};
use crate::clock::Clock;
use crate::constraints::index::ConstraintIndex;
use crate::effects::ordered::OrderedWrites;
use crate::effects::outcome::Outcome;
use crate::gang::registry::GangRegistry;
use crate::gang::tenancy::namespace_limits::NamespaceGangCounts;
use crate::provision::idle_nodes::IdleNodes;
use crate::provision::node_claim_create::PendingClaims;
use crate::provision::requests_issued::registry::IssuedRequests;
use crate::provision::requests_served::registry::ServedRequests;
use crate::recover::learned::LearnedState;
use crate::recover::quarantine::{Quarantine, Subject};
use crate::run::Config;
use crate::status::accepted::Refused;
use crate::status::events::EventRecorder;
use crate::status::gang::WrittenStatus;
use crate::status::omitted_objects::OmittedObjects;
use crate::status::pools_and_queues::SupplyStatus;

/// What must be looked at again.
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
    pub(crate) pools: BTreeMap<Arc<str>, KnownPool>,
    pub(crate) rejected_objects: Refused,
    /// Objects that are left out.
    pub(crate) omitted_objects: OmittedObjects,
    pub(crate) gangs: GangRegistry,
    pub(crate) constraints: ConstraintIndex,
    pub(crate) served_requests: ServedRequests,
    pub(crate) issued_requests: IssuedRequests,
    /// The order that assembles for each gang.
    pub(crate) order_by_gang: BTreeMap<Arc<str>, OrderId>,
    /// Orders that others make way for and that are not written down yet.
    pub(crate) orders_not_written: BTreeSet<OrderId>,
    pub(crate) pending_claims: PendingClaims,
    pub(crate) verdicts: Vec<(GangId, Verdict)>,
    /// When those that hold a start time are to start.
    pub(crate) expected_starts: BTreeMap<GangId, Time>,
    pub(crate) written_status: WrittenStatus,
    /// Gangs that were taken in since objects were last made: theirs are made when it is known where they go, if it is.
    pub(crate) gangs_without_object: BTreeSet<Arc<str>>,
    /// Whether something was not written because it changes too often.
    pub(crate) has_deferred_writes: bool,
    /// Nodes as the World knows them: most changes of a node are heartbeats.
    pub(crate) seen_nodes: FxHashMap<Arc<str>, NodeSpec>,
    /// Nodes on which more is taken than seats stand for.
    pub(crate) excess_usage: ExcessUsage,
    /// Gangs that have pods on nodes beyond what their queues allow, and when it was last looked whether they do by now.
    pub(crate) bound_elsewhere: BTreeSet<Arc<str>>,
    pub(crate) bound_elsewhere_checked_at: Option<Instant>,
    pub(crate) gang_counts: NamespaceGangCounts,
    pub(crate) dirty: Dirty,
    /// What is left out because it makes the host panic.
    pub(crate) quarantine: Quarantine,
    /// What is handled now: what a panic is blamed on.
    pub(crate) subject: Option<Subject>,
    /// Gangs that were looked at since the planner last returned.
    pub(crate) unplanned: BTreeSet<Arc<str>>,
    /// Gangs that were looked at too often, and are looked at again after a while.
    pub(crate) requeued: BTreeSet<Arc<str>>,
    pub(crate) writer: ApiWriter,
    pub(crate) events: EventRecorder,
    pub(crate) ordered_writes: OrderedWrites,
    pub(crate) supply_status: SupplyStatus,
    pub(crate) idle_nodes: IdleNodes,
    pub(crate) learned: LearnedState,
    pub(crate) forecaster: Forecaster,
    pub(crate) outcomes: mpsc::UnboundedSender<Outcome>,
    /// Somebody needs a kind that is not watched yet.
    pub(crate) rediscover: Arc<Notify>,
    /// Whether what everything is counted by has changed.
    pub(crate) must_rebuild: bool,
    /// Whether the World has changed since the planner was last asked.
    pub(crate) world_changed: bool,
    pub(crate) wake: Option<Time>,
}

impl Host {
    /// A host that has seen nothing yet.
    pub(crate) fn new(
        config: &Config,
        writer: ApiWriter,
        told: mpsc::UnboundedSender<Outcome>,
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
            rejected_objects: Refused::new(),
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
            subject: None,
            unplanned: BTreeSet::new(),
            requeued: BTreeSet::new(),
            events: EventRecorder::new(writer.client.clone(), identity),
            writer: writer,
            ordered_writes: OrderedWrites::default(),
            supply_status: SupplyStatus::default(),
            idle_nodes: IdleNodes::default(),
            learned: LearnedState::default(),
            forecaster: Forecaster::default(),
            outcomes: told,
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

    /// Tells the World of something, and whether it took it.
    pub(crate) fn apply_event(&mut self, event: &Event) -> bool {
        match self.world.apply(self.now(), event) {
            Ok(()) => {
                self.world_changed = true;
                if event.tells_of_offerings() {
                    self.supply_status.is_news();
                }
                true
            }
            Err(refusal) => {
                tracing::warn!(%refusal, ?event, "the World refuses an event");
                false
            }
        }
    }

    /// Where objects of a kind are, if the server has any.
    pub(crate) fn api(&self, interest: KindRole) -> Option<Api<DynamicObject>> {
        let kind = self.sources.resource(interest)?;
        Some(Api::all_with(self.writer.client.clone(), kind))
    }
}
