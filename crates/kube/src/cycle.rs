//! One cycle of the host: observe changes, reconcile what they concern, plan, write statuses.
//!
//! [`Host::run_cycle`] is the table of contents of this crate: each step is one line, and its folder has the rest.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::api::discovery::{Served, Sought};
use crate::api::watch::watches::{ObjectKind, Watches};
use crate::cache::cluster_cache::ObservedChanges;
use crate::cache::watched_objects::NODE_CLAIMS;
use crate::effects::outcome::{Outcome, RETRY_PAUSE};
use crate::features::Feature;
use crate::host::Host;
use crate::recover::quarantine::WorkItem;

/// The longest pause between two cycles: clocks are compared and deadlines checked at least so often.
const CYCLE_INTERVAL_MAX: Duration = Duration::from_secs(10);

/// How often one gang is reconciled in one cycle. Each time may bring it a step further, and the longest way takes a
/// handful.
const ATTEMPTS_MAX: u32 = 16;

/// Classes of nodes and signatures of members that a World may keep beyond those that can exist now. The World forgets none,
/// and where pods of other schedulers come and go each sum of their requests is another class of node: after so many the
/// World is rebuilt, which costs one list of everything. A class takes about a kilobyte.
const STALE_KINDS_MAX: usize = 20_000;

impl Host {
    /// Kinds to discover: those that are not watched yet.
    pub(crate) fn unwatched_kinds(&self) -> Vec<Sought> {
        let missing = self.sources.missing().into_iter();
        let mut sought: Vec<Sought> = missing.map(|(of, wanted)| (Some(of), wanted)).collect();
        let has_rights = !self.config.disabled.has(Feature::Karpenter);
        sought.extend((!self.cache.has_claims && has_rights).then_some((None, NODE_CLAIMS)));
        sought
    }

    /// Starts to watch kinds that the API server serves now.
    pub(crate) fn watch(&mut self, served: Served, watches: &mut Watches) {
        for (kind_role, kind) in served {
            match kind_role {
                Some(kind_role) => {
                    let source = self.sources.add(kind_role, kind, watches);
                    source.into_iter().for_each(|source| {
                        self.cache.add(source, !kind_role.is_needed_by_all());
                    });
                }
                None => {
                    self.cache.has_claims = true;
                    watches.claims();
                }
            }
        }
    }

    /// Logs which kinds cannot be listed: nothing else shows why gangs wait for them.
    pub(crate) fn warn_of_unlisted(&mut self) {
        for source in self.cache.overdue(Instant::now()) {
            let kind_role = self.sources.role_of(source);
            let Some(kind) = self.sources.resource(kind_role) else { continue };
            let all = kind_role.is_needed_by_all();
            tracing::error!(
                kind = kind.plural,
                group = kind.group,
                "cannot be listed; {}",
                if all { "nothing is decided until it is" } else { "gangs that need it wait" }
            );
        }
    }

    /// Applies observed changes. Before the World is built there is nothing to update: it is built from all objects.
    pub(crate) fn observe(&mut self, mut touched: ObservedChanges) {
        for (which, left) in std::mem::take(&mut touched.omitted) {
            self.record_omission(which, &left);
        }
        touched.others.iter().for_each(|(of, moved)| {
            self.omitted_objects.forget(ObjectKind::Other(*of), &moved.key);
        });
        touched
            .pods
            .iter()
            .for_each(|moved| self.omitted_objects.forget(ObjectKind::Pod, &moved.key));
        if !self.world.is_synced() {
            return;
        }
        for (source, moved) in &touched.others {
            let kind_role = self.sources.role_of(*source);
            if self.begin_item(WorkItem::Object(kind_role, moved.key.clone())) {
                self.observe_object(*source, moved);
            }
        }
        for moved in &touched.claims {
            if self.begin_item(WorkItem::Claim(moved.key.clone())) {
                self.observe_node_claim(moved);
            }
        }
        for moved in &touched.nodes {
            if self.begin_item(WorkItem::Node(moved.key.clone())) {
                self.node_may_invalidate(moved);
            }
        }
        self.current_item = None;
        let gone = touched.nodes.iter().filter(|moved| moved.is.is_none());
        gone.for_each(|moved| self.observe_replaced_node(moved));
        self.dirty.nodes.extend(touched.nodes.into_iter().map(|moved| moved.key));
        for moved in &touched.pods {
            if self.begin_item(WorkItem::Pod(moved.key.clone())) {
                self.observe_pod(moved);
            }
        }
        self.current_item = None;
    }

    /// Runs one cycle: reconciles everything that has changed, plans, and writes what changed of it.
    pub(crate) fn run_cycle(&mut self) {
        let mut attempts = BTreeMap::new();
        self.rebuild_if_needed();
        self.expire_deadlines();
        self.requeue_waiting();
        self.reconcile_dirty(&mut attempts);
        self.forecast_demand();
        self.decide_if_changed();
        self.clean_up_issued_requests();
        self.decide_if_changed();
        self.close_consumed_requests();
        // Gangs that the planner stopped need not wait for another change.
        self.reconcile_dirty(&mut attempts);
        self.write_statuses();
        self.must_rebuild |= self.has_too_many_kinds() || self.clock.is_wrong();
    }

    /// Builds the World from all observed objects, where it is not built yet.
    fn rebuild_if_needed(&mut self) {
        if !self.world.is_synced() {
            self.rebuild();
        }
    }

    /// Handles every deadline that has passed, however many changes were observed.
    fn expire_deadlines(&mut self) {
        let now = self.now();
        self.world_changed |= self.wake.is_some_and(|wake| wake <= now);
        self.retry_quarantined();
        self.expire_volume_binding();
        self.expire_external_binding();
        self.expire_binding();
        self.expire_empty_seats();
        self.expire_requests();
    }

    /// Marks gangs dirty whose limits or constraints may have changed.
    fn requeue_waiting(&mut self) {
        self.reconcile_bound_elsewhere();
        self.reconcile_gang_counts();
        let invalidated = self.constraints.take_invalidated();
        self.dirty.gangs.extend(invalidated);
    }

    fn decide_if_changed(&mut self) {
        if self.world_changed {
            self.decide();
        }
    }

    /// Writes statuses that have changed: gangs first, then pools, queues, idle nodes and what was learned.
    fn write_statuses(&mut self) {
        self.has_deferred_writes = false;
        for gang in std::mem::take(&mut self.gangs_without_object) {
            self.create_gang_object(&gang);
        }
        self.write_verdicts();
        self.write_supply_status();
        self.write_idle_since();
        self.write_learned_state();
    }

    /// Reconciles dirty nodes and gangs, and those that become dirty by it, until none is left.
    fn reconcile_dirty(&mut self, attempts: &mut BTreeMap<Arc<str>, u32>) {
        while !self.dirty.nodes.is_empty() || !self.dirty.gangs.is_empty() {
            for node in std::mem::take(&mut self.dirty.nodes) {
                if self.begin_item(WorkItem::Node(node.clone())) {
                    self.reconcile_node(&node);
                }
            }
            self.current_item = None;
            let gangs = std::mem::take(&mut self.dirty.gangs);
            if !gangs.is_empty() {
                self.reconcile_excess_usage();
            }
            for gang in gangs {
                let count = attempts.entry(gang.clone()).or_default();
                *count += 1;
                self.unplanned.insert(gang.clone());
                self.current_item = Some(WorkItem::Gang(gang.clone()));
                match *count {
                    ..=ATTEMPTS_MAX => self.reconcile_gang(&gang),
                    _ => self.requeue_after(&gang),
                }
            }
            self.current_item = None;
            self.refresh_node_tokens();
            self.decide_if_changed();
        }
    }

    /// Whether the World keeps far more classes of nodes and signatures of members than can exist.
    fn has_too_many_kinds(&self) -> bool {
        let known = self.world.class_count() + self.world.signature_count();
        let existing = self.cache.nodes.len() + self.cache.pods.len();
        known > existing + STALE_KINDS_MAX
    }

    /// Reconciles a gang later that was reconciled too often in one cycle, so that it does not hold up the others.
    pub(crate) fn requeue_after(&mut self, gang: &Arc<str>) {
        if !self.requeued.insert(gang.clone()) {
            return;
        }
        tracing::warn!(
            gang = &**gang,
            "reconciled too often without progress; reconciled again later"
        );
        let (outcomes, gang) = (self.outcomes.clone(), gang.clone());
        tokio::spawn(async move {
            tokio::time::sleep(RETRY_PAUSE).await;
            let _ = outcomes.send(Outcome::RequeueAfterLimit(gang));
        });
    }

    /// Lets the forecaster read the demand so far, when it is due.
    fn forecast_demand(&mut self) {
        let now = self.now();
        if self.forecaster.due(&self.world, now).is_some_and(|due| due <= now) {
            for expected in self.forecaster.forecast(&self.world, now) {
                self.apply_event(&expected);
            }
        }
    }

    /// How long the host may sleep if nothing is observed.
    pub(crate) fn time_to_next_cycle(&self) -> Duration {
        let now = self.now();
        let forecast = self.forecaster.due(&self.world, now);
        let wake = self.wake.into_iter().chain(forecast).min();
        let due = wake.map(|wake| Duration::from_millis(wake.since(now).0.max(1)));
        let most = match self.written_status.defer(Instant::now()) {
            Some(left) => left,
            None if self.has_deferred_writes => CYCLE_INTERVAL_MAX / 4,
            None => CYCLE_INTERVAL_MAX,
        };
        let retried = self.quarantine.time_to_next_retry(Instant::now()).unwrap_or(most);
        due.unwrap_or(most).min(most).min(retried)
    }
}
