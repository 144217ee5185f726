//! One turn of the host: what was seen is taken in, what has changed is looked at, and the planner is asked.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::api::watch::watches::{Watches, Which};
use crate::cache::cluster_cache::Touched;
use crate::cache::watched_objects::CLAIMS;
use crate::effects::outcome::Outcome;
use crate::features::Feature;
use crate::host::Host;
use crate::recover::quarantine::Subject;
use crate::run::{Served, Sought};
use crate::schedule::placement::AGAIN;

/// The longest that nothing is decided: clocks are compared, deadlines looked at.
const CYCLE_INTERVAL_MAX: Duration = Duration::from_secs(10);

/// How often one gang is looked at in one turn. Each look may bring it a step further, and a handful is what the longest
/// way takes.
const LOOKS: u32 = 16;

/// Kinds of nodes and of members that a World may know of beyond those there can be now. It forgets none, and where pods of
/// others come and go each sum of what they take makes another kind of node: after so many it is made anew, which costs one
/// list of everything. A kind takes about a kilobyte.
const STALE_KINDS_MAX: usize = 20_000;

impl Host {
    /// Kinds that are not watched yet.
    pub(crate) fn unwatched_kinds(&self) -> Vec<Sought> {
        let missing = self.sources.missing().into_iter();
        let mut sought: Vec<Sought> = missing.map(|(of, wanted)| (Some(of), wanted)).collect();
        let has_rights = !self.config.disabled.has(Feature::Karpenter);
        sought.extend((!self.cache.has_claims && has_rights).then_some((None, CLAIMS)));
        sought
    }

    pub(crate) fn watch(&mut self, served: Served, watches: &mut Watches) {
        for (interest, kind) in served {
            match interest {
                Some(interest) => {
                    let source = self.sources.add(interest, kind, watches);
                    source.into_iter().for_each(|source| {
                        self.cache.add(source, !interest.is_needed_by_all());
                    });
                }
                None => {
                    self.cache.has_claims = true;
                    watches.claims();
                }
            }
        }
    }

    /// Says which kinds cannot be listed: whoever waits for them would not know.
    pub(crate) fn warn_of_unlisted(&mut self) {
        for source in self.cache.overdue(Instant::now()) {
            let interest = self.sources.interest(source);
            let Some(kind) = self.sources.resource(interest) else { continue };
            let all = interest.is_needed_by_all();
            tracing::error!(
                kind = kind.plural,
                group = kind.group,
                "cannot be listed; {}",
                if all { "nothing is decided until it is" } else { "gangs that need it wait" }
            );
        }
    }

    /// Takes in what was seen. Before the World is made there is nothing to tell it: it will be made of all there is.
    pub(crate) fn take(&mut self, mut touched: Touched) {
        for (which, left) in std::mem::take(&mut touched.left_out) {
            self.leave_out(which, &left);
        }
        touched
            .others
            .iter()
            .for_each(|(of, moved)| self.omitted_objects.forget(Which::Other(*of), &moved.key));
        touched.pods.iter().for_each(|moved| self.omitted_objects.forget(Which::Pod, &moved.key));
        if !self.world.is_synced() {
            return;
        }
        for (source, moved) in &touched.others {
            let interest = self.sources.interest(*source);
            if self.handles(Subject::Object(interest, moved.key.clone())) {
                self.observe_object(*source, moved);
            }
        }
        for moved in &touched.claims {
            if self.handles(Subject::Claim(moved.key.clone())) {
                self.observe_node_claim(moved);
            }
        }
        for moved in &touched.nodes {
            if self.handles(Subject::Node(moved.key.clone())) {
                self.node_may_invalidate(moved);
            }
        }
        self.subject = None;
        let gone = touched.nodes.iter().filter(|moved| moved.is.is_none());
        gone.for_each(|moved| self.node_is_replaced(moved));
        self.dirty.nodes.extend(touched.nodes.into_iter().map(|moved| moved.key));
        for moved in &touched.pods {
            if self.handles(Subject::Pod(moved.key.clone())) {
                self.observe_pod(moved);
            }
        }
        self.subject = None;
    }

    /// Looks at everything that has changed, and decides.
    pub(crate) fn turn(&mut self) {
        if !self.world.is_synced() {
            self.rebuild();
        }
        // However much there is to see, what was to be done by now is done.
        let now = self.now();
        self.world_changed |= self.wake.is_some_and(|wake| wake <= now);
        self.retry_left_out();
        self.expire_volume_binding();
        self.expire_external_binding();
        self.expire_binding();
        self.expire_empty_seats();
        self.expire_requests();
        self.reconcile_bound_elsewhere();
        self.reconcile_gang_counts();
        let disturbed = self.constraints.disturbed();
        self.dirty.gangs.extend(disturbed);
        let mut looks = BTreeMap::new();
        self.reconcile_dirty(&mut looks);
        self.forecast_demand();
        if self.world_changed {
            self.decide();
        }
        self.clean_up_issued_requests();
        if self.world_changed {
            self.decide();
        }
        self.settle_requests();
        // Who was told to go by now need not wait until something else happens.
        self.reconcile_dirty(&mut looks);
        self.has_deferred_writes = false;
        for gang in std::mem::take(&mut self.gangs_without_object) {
            self.create_gang_object(&gang);
        }
        self.write_verdicts();
        self.write_supply_status();
        self.write_idle();
        self.write_learned_state();
        self.must_rebuild |= self.has_too_many_kinds() || self.clock.is_wrong();
    }

    /// Looks at everything that has changed, and at what that changes, until nothing does.
    fn reconcile_dirty(&mut self, looks: &mut BTreeMap<Arc<str>, u32>) {
        while !self.dirty.nodes.is_empty() || !self.dirty.gangs.is_empty() {
            for node in std::mem::take(&mut self.dirty.nodes) {
                if self.handles(Subject::Node(node.clone())) {
                    self.reconcile_node(&node);
                }
            }
            self.subject = None;
            let gangs = std::mem::take(&mut self.dirty.gangs);
            if !gangs.is_empty() {
                self.reconcile_excess_usage();
            }
            for gang in gangs {
                let seen = looks.entry(gang.clone()).or_default();
                *seen += 1;
                self.unplanned.insert(gang.clone());
                self.subject = Some(Subject::Gang(gang.clone()));
                match *seen {
                    ..=LOOKS => self.reconcile_gang(&gang),
                    _ => self.requeue_after(&gang),
                }
            }
            self.subject = None;
            self.settle_tokens();
            if self.world_changed {
                self.decide();
            }
        }
    }

    /// Whether the World knows of far more kinds of nodes and members than there can be.
    fn has_too_many_kinds(&self) -> bool {
        let known = self.world.class_count() + self.world.signature_count();
        let there = self.cache.nodes.len() + self.cache.pods.len();
        known > there + STALE_KINDS_MAX
    }

    /// A gang that comes to nothing however often it is looked at waits: it must not keep the others from being seen to.
    pub(crate) fn requeue_after(&mut self, gang: &Arc<str>) {
        if !self.requeued.insert(gang.clone()) {
            return;
        }
        tracing::warn!(gang = &**gang, "nothing comes of looking at it; it is looked at later");
        let (outcomes, gang) = (self.outcomes.clone(), gang.clone());
        tokio::spawn(async move {
            tokio::time::sleep(AGAIN).await;
            let _ = outcomes.send(Outcome::RequeueAfterLimit(gang));
        });
    }

    /// Has the forecaster look at what was asked for, when it wants to.
    fn forecast_demand(&mut self) {
        let now = self.now();
        if self.forecaster.due(&self.world, now).is_some_and(|due| due <= now) {
            for expected in self.forecaster.look(&self.world, now) {
                self.apply_event(&expected);
            }
        }
    }

    /// How long nothing needs to be decided if nothing is seen.
    pub(crate) fn wait(&self) -> Duration {
        let now = self.now();
        let forecast = self.forecaster.due(&self.world, now);
        let wake = self.wake.into_iter().chain(forecast).min();
        let due = wake.map(|wake| Duration::from_millis(wake.since(now).0.max(1)));
        let most = match self.written_status.defer(Instant::now()) {
            Some(left) => left,
            None if self.has_deferred_writes => CYCLE_INTERVAL_MAX / 4,
            None => CYCLE_INTERVAL_MAX,
        };
        let retried = self.quarantine.wait(Instant::now()).unwrap_or(most);
        due.unwrap_or(most).min(most).min(retried)
    }
}
