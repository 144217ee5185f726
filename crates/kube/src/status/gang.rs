//! What the planner says of each gang, where its owner looks: on the Gang, and on pods that wait.
//!
//! Written when it changes, and not more often than a person reads: a verdict that counts seconds would be written
//! every cycle.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::api::{Api, DynamicObject};
use kube::runtime::events::EventType;
use muster_api::crd::{GangPhase, Members, Stamp, gang_conditions};
use muster_api::dialects::{self, GroupRef, State, StatusPatch};
use muster_api::words;
use muster_core::World;
use muster_core::allowed::Excess;
use muster_core::event::Refusal;
use muster_core::gang::{Phase, members_of};
use muster_core::id::GangId;
use muster_core::time::{Span, Time};
use muster_core::verdict::{Blocker, Verdict};
use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use crate::api::retry::ApiError;
use crate::cache::store::Key;
use crate::constraints::pod_constraints::PodConstraints;
use crate::effects::outcome::RETRY_PAUSE;
use crate::gang::build::with_metadata;
use crate::gang::identity::GangSource;
use crate::gang::record::GangRecord;
use crate::host::Host;
use crate::objects::pod::Pod;
use crate::provision::order_object::order_name;
use crate::status::gang_object::{group_write_key, write_group_status, write_or_create};

/// How long the same phase may be told in old words.
const PAUSE: Duration = Duration::from_secs(5);
/// How often it is looked what has changed: nobody reads faster, and a burst of changes is looked at in one go.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// How long somebody must have waited to be told why: most wait for less than it takes to read.
const FIRST: Span = Span::secs(2);
/// Why a gang waits whose pods are tied to something that is not as it must be.
pub(crate) const TIED: &str = "ConstraintsUnsatisfied";
/// Why a gang waits that the server would not have bound.
pub(crate) const REFUSED: &str = "BindingRefused";
/// Why a gang waits that names a queue nobody declares.
pub(crate) const UNKNOWN_QUEUE: &str = "UnknownQueue";
/// Why a gang waits whose queue takes nobody.
pub(crate) const QUEUE_CLOSED: &str = "QueueClosed";
/// How words begin about who has no hope.
const NEVER: &str = "can never run: ";
/// Said of a gang whose handling made the controller panic.
pub(crate) const LEFT_OUT: &str = "LeftOut";
/// Said of pods that are no gang: some are missing, or what they ask for cannot be understood.
const NOT_WHOLE: &str = "WaitingForMembers";
/// Words of one gang, at most.
const WORDS_MAX: usize = 1_000;

/// What was last written of each gang.
#[derive(Debug, Default)]
pub(crate) struct WrittenStatus {
    /// When it was last looked what there is to write. That goes through all gangs.
    looked: Option<Instant>,
    /// Whether it was too early to look again.
    is_put_off: bool,
    gangs: FxHashMap<Arc<str>, Last>,
    /// Gangs of which it was said that they are stopped, and whose status may not say so yet.
    stops: BTreeSet<Arc<str>>,
    pub(crate) pods: FxHashMap<Key, (&'static str, String)>,
    /// Gangs with pods that were not told what their gang was: they came later, or the server refused it.
    untold: BTreeSet<Arc<str>>,
}

impl WrittenStatus {
    /// A pod of a gang was not told what was said last.
    pub(crate) fn rewrite_pods(&mut self, gang: &Arc<str>) {
        self.untold.insert(gang.clone());
    }

    /// Whether it is time to look again.
    fn may_look(&mut self, now: Instant) -> bool {
        self.is_put_off = self.looked.is_some_and(|looked| now < looked + RETRY_INTERVAL);
        if !self.is_put_off {
            self.looked = Some(now);
        }
        !self.is_put_off
    }

    /// Whether it was said of a gang that it is stopped.
    #[cfg(test)]
    pub(crate) fn is_said_to_stop(&self, name: &str) -> bool {
        self.stops.contains(name)
    }

    /// How long until it is looked again, if that was put off.
    pub(crate) fn defer(&self, now: Instant) -> Option<Duration> {
        let due = self.looked.filter(|_| self.is_put_off)? + RETRY_INTERVAL;
        Some(due.saturating_duration_since(now))
    }
}

/// What was last written of one gang, and when.
#[derive(Debug)]
struct Last {
    told: StatusReport,
    at: Instant,
}

/// What a gang's owner is told.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StatusReport {
    pub(crate) phase: GangPhase,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    members: Members,
    order: Option<String>,
    position: Option<u32>,
    waits_since: Option<Time>,
    /// To the minute: it moves a little all the time.
    expected: Option<Time>,
    admitted: Option<Time>,
    runs_since: Option<Time>,
    restarts: u32,
    failed_orders: u32,
    last_failed_order: Option<Time>,
    /// What was looked at, where somebody has rewritten it.
    generation: Option<i64>,
}

impl StatusReport {
    /// What pods are told that are no gang yet.
    fn no_gang(reason: &'static str, message: String) -> Self {
        Self {
            phase: GangPhase::Waiting,
            reason,
            message,
            members: Members { ready: 0, total: 0 },
            order: None,
            position: None,
            waits_since: None,
            expected: None,
            admitted: None,
            runs_since: None,
            restarts: 0,
            failed_orders: 0,
            last_failed_order: None,
            generation: None,
        }
    }
}

impl Host {
    /// Writes down what has changed in what the planner says, if it is time to look.
    pub(crate) fn write_verdicts(&mut self) {
        if !self.written_status.may_look(Instant::now()) {
            return;
        }
        let verdicts = std::mem::take(&mut self.verdicts);
        for (id, verdict) in &verdicts {
            let Some(gang) = self.world.gang(*id) else { continue };
            let name = gang.spec.name.clone();
            let waits_for_volumes =
                self.gangs.get(&name).is_some_and(|group| group.volume_binding.is_some());
            if matches!(gang.phase, Phase::Admitted { .. }) && !waits_for_volumes {
                continue; // its placement is in its status, and says so
            }
            let is_being_bound =
                |group: &GangRecord| group.binding_since.is_some() && !group.was_fully_bound;
            if *verdict == Verdict::Running && self.gangs.get(&name).is_some_and(is_being_bound) {
                self.has_deferred_writes = true; // found in part: how many run is told when the last is there
                continue;
            }
            let waits = matches!(verdict, Verdict::Waiting { .. } | Verdict::Provisioning { .. });
            if waits && self.now().since(gang.waits_since) < FIRST {
                self.has_deferred_writes = true;
                continue;
            }
            let told = self.status_report(*id, verdict);
            let known = self.written_status.gangs.get(&name);
            if known.is_some_and(|known| known.told == told) {
                self.tell_untold(&name, verdict, &told);
                continue;
            }
            let is_new = known.is_none_or(|known| known.told.phase != told.phase);
            let pods: Arc<str> = format!("{name}#pods").into();
            // What was to be written before comes first, and may be out of date by then.
            let busy = self.ordered_writes.is_busy(&name) || self.ordered_writes.is_busy(&pods);
            if busy || (!is_new && known.is_some_and(|known| known.at.elapsed() < PAUSE)) {
                self.has_deferred_writes = true;
                continue;
            }
            let is_said =
                self.written_status.stops.remove(&name) && told.phase == GangPhase::Stopping;
            if is_new && !is_said {
                self.record_phase(&name, told.phase, &told.message);
            }
            self.written_status.untold.remove(&name);
            self.write_pod_reasons(&name, &pods, verdict, &told);
            let state = self.state_of(&name, verdict, &told);
            self.write_gang(&name, &state, &told);
            self.set_verdict_condition(&name, verdict, told.reason, &told.message);
            self.written_status.gangs.insert(name, Last { told, at: Instant::now() });
        }
        self.verdicts = verdicts;
        self.write_troubles();
    }

    /// Pods that were not told what their gang was are told now: nothing new is to be said of the gang itself.
    fn tell_untold(&mut self, name: &Arc<str>, verdict: &Verdict, told: &StatusReport) {
        if !self.written_status.untold.contains(name) {
            return;
        }
        let pods: Arc<str> = format!("{name}#pods").into();
        if self.ordered_writes.is_busy(&pods) {
            self.has_deferred_writes = true;
            return;
        }
        self.written_status.untold.remove(name);
        self.write_pod_reasons(name, &pods, verdict, told);
    }

    /// Pods that are no gang are told why, after a moment: most are one as soon as the last of them is made.
    fn write_troubles(&mut self) {
        let troubled: Vec<Arc<str>> = self.gangs.blocked().cloned().collect();
        for name in troubled {
            let Some(group) = self.gangs.get(&name) else { continue };
            let Some((why, since)) = &group.blocked else { continue };
            let is_left_out = self.quarantine_reason(&name).is_some();
            let reason = match &group.world_refusal {
                _ if is_left_out => LEFT_OUT,
                Some(Refusal::UnknownQueue(_)) => UNKNOWN_QUEUE,
                _ => NOT_WHOLE,
            };
            let told = StatusReport::no_gang(reason, why.clone());
            let is_known = self.world.gang_named(&name).is_some();
            let before = self.written_status.gangs.get(&name).map(|known| &known.told);
            let is_told = before == Some(&told);
            let is_news = before.is_none_or(|before| before.reason != told.reason);
            let is_untold = self.written_status.untold.contains(&name);
            let is_heard =
                !self.pods_by_state(group).unbound.is_empty() || self.has_no_created_pods(group);
            if is_known || (is_told && !is_untold) || !is_heard {
                continue;
            }
            let pods: Arc<str> = format!("{name}#pods").into();
            let early = since.elapsed().as_millis() < u128::from(FIRST.0);
            if early || self.ordered_writes.is_busy(&name) || self.ordered_writes.is_busy(&pods) {
                self.has_deferred_writes = true;
                continue;
            }
            if is_news && !is_left_out {
                // How many are missing changes with each that comes; that some are is told once.
                self.record_event(&name, EventType::Normal, (reason, "Schedule"), &told.message);
            }
            self.written_status.untold.remove(&name);
            self.write_pod_conditions(&name, &pods, reason, &told.message);
            if is_told {
                continue;
            }
            let state = State::Waiting { why: told.message.clone(), node_would_help: false };
            self.write_gang(&name, &state, &told);
            self.written_status.gangs.insert(name, Last { told, at: Instant::now() });
        }
    }

    /// A gang is stopped for another's sake. That is said at once: it may be over before its status is looked at again.
    pub(crate) fn record_stop(&mut self, name: &Arc<str>, id: GangId) {
        let message = self.status_report(id, &Verdict::Stopping).message;
        self.record_phase(name, GangPhase::Stopping, &message);
        self.written_status.stops.insert(name.clone());
    }

    pub(crate) fn status_report(&self, id: GangId, verdict: &Verdict) -> StatusReport {
        let gang = self.world.gang(id).expect("it has a verdict");
        let needs: u32 = gang.spec.roles.iter().map(|role| role.min).sum();
        let has = members_of(&gang.seats);
        let (phase, reason, ready, total) = match verdict {
            Verdict::Admitted => (GangPhase::Admitted, "Admitted", 0, needs),
            Verdict::Running => (GangPhase::Running, "Running", has, has),
            Verdict::Stopping => (GangPhase::Stopping, "Stopping", 0, needs),
            Verdict::Provisioning { ready, total, .. } => {
                (GangPhase::Provisioning, "Provisioning", *ready, *total)
            }
            Verdict::Waiting { blockers, .. } => {
                (GangPhase::Waiting, reason(&self.world, blockers), 0, needs)
            }
            Verdict::Impossible { blockers } => {
                let reason = match blockers.first() {
                    Some(Blocker::NotAllowed { .. } | Blocker::BeyondGuarantee { .. }) => {
                        reason(&self.world, blockers)
                    }
                    _ => "Infeasible",
                };
                (GangPhase::Infeasible, reason, 0, needs)
            }
        };
        let position = match verdict {
            Verdict::Waiting { position, .. } => Some(*position),
            _ => None,
        };
        let (phase, reason, mut message) = match self.ties_in_words(&gang.spec.name, &phase) {
            Some(words) if waits(&phase) => {
                let is_alone = self.backoff_reason(&gang.spec.name).is_some();
                (GangPhase::Waiting, if is_alone { REFUSED } else { TIED }, words)
            }
            Some(words) => (GangPhase::Admitted, "WaitingForVolumes", words),
            None => {
                let mut words = words::verdict(&self.world, id, verdict);
                if let (true, Some(needs)) =
                    (waits(&phase), self.constraints.describe(&gang.spec.name))
                {
                    words = format!("{words}; {needs}");
                }
                match self.is_kept_by_others(&gang.spec.name) {
                    // What others forbid now they may allow when they have moved.
                    true if phase == GangPhase::Infeasible => {
                        let words = words.strip_prefix(NEVER).unwrap_or(&words);
                        (GangPhase::Waiting, TIED, format!("waits until others move: {words}"))
                    }
                    _ => (phase, reason, words),
                }
            }
        };
        message.truncate(
            (0..=WORDS_MAX.min(message.len()))
                .rev()
                .find(|at| message.is_char_boundary(*at))
                .unwrap_or(0),
        );
        let members = Members {
            ready: i32::try_from(ready).unwrap_or(i32::MAX),
            total: i32::try_from(total).unwrap_or(i32::MAX),
        };
        let order = match verdict {
            Verdict::Provisioning { order, .. } => Some(order_name(*order)),
            _ => None,
        };
        let waits = waits(&phase) || phase == GangPhase::Stopping;
        StatusReport {
            phase,
            reason,
            message,
            members,
            order,
            position,
            waits_since: waits.then_some(gang.waits_since),
            expected: self.expected_starts.get(&id).map(|at| Time(at.0 - at.0 % 60_000)),
            admitted: match gang.phase {
                Phase::Admitted { at } => Some(at),
                _ => None,
            },
            runs_since: match gang.phase {
                Phase::Running { at } => Some(at),
                _ => None,
            },
            restarts: gang.restarts,
            failed_orders: gang.failed_orders,
            last_failed_order: gang.last_failure,
            generation: self.generation_of(&gang.spec.name).filter(|generation| *generation > 1),
        }
    }

    /// How often a gang's object was rewritten.
    fn generation_of(&self, name: &str) -> Option<i64> {
        self.gang_object(name)?.metadata.generation
    }

    /// Tells a gang's object, and that of another dialect in its own words.
    fn write_gang(&mut self, name: &Arc<str>, state: &State, told: &StatusReport) {
        let Some(group) = self.gangs.get(name) else { return };
        if matches!(group.source, GangSource::Pod { .. }) {
            return;
        }
        // Its object may not be there yet: it came while nobody looked, or a moment ago.
        let own = self.gang_api(name).map(|objects| {
            let before = self.gang_object(name).and_then(|gang| gang.data.get("status"));
            let mut status = status(told, before, self.now());
            if let Some(generation) = self.generation_of(name) {
                status["status"]["observedGeneration"] = json!(generation);
            }
            (objects, self.generated_gang_object(name), status)
        });
        let theirs = self.group_patches(name, |of| Some(self.state_for(name, of, state)));
        let hands = self.writer.for_namespace(crate::cache::store::split_key(name).0);
        let (heard, gang) = (self.outcomes.clone(), name.clone());
        let may_wait = told.phase == GangPhase::Running;
        if !theirs.is_empty() {
            let (hands, heard, gang) = (hands.clone(), heard.clone(), gang.clone());
            self.ordered_writes.write(&group_write_key(name), async move {
                if may_wait {
                    hands.when_bindings_are_done().await;
                }
                let mut failed = false;
                for (objects, object, patch) in theirs {
                    let said = write_group_status(&hands, &objects, &object, &patch).await.err();
                    failed |= is_failure(&gang, said);
                }
                if failed {
                    tokio::time::sleep(RETRY_PAUSE).await;
                    let _ = heard.send(crate::effects::outcome::Outcome::StatusNotWritten(gang));
                }
            });
        }
        let Some((objects, object, status)) = own else { return };
        self.ordered_writes.write(name, async move {
            if may_wait {
                hands.when_bindings_are_done().await;
            }
            let said = write_or_create(&hands, &objects, &gang, object, status).await.err();
            if is_failure(&gang, said) {
                tokio::time::sleep(RETRY_PAUSE).await;
                let _ = heard.send(crate::effects::outcome::Outcome::StatusNotWritten(gang));
            }
        });
    }

    /// What the objects of another dialect are told, each its own, and where they are.
    pub(crate) fn group_patches(
        &self,
        name: &Arc<str>,
        state: impl Fn(&GroupRef) -> Option<State>,
    ) -> Vec<(Api<DynamicObject>, String, StatusPatch)> {
        let groups = match self.gangs.get(name).map(|group| (&group.source, group)) {
            Some((GangSource::Group(of), _)) => vec![of],
            Some((GangSource::Merged(groups), group)) => {
                groups.iter().filter(|of| self.is_member_group(group, groups, of)).collect()
            }
            _ => Vec::new(),
        };
        let patch = |of: &GroupRef| {
            let (kind_role, object) = self.source_object(&GangSource::Group(of.clone()))?;
            let kind = self.sources.resource(kind_role)?;
            let mut object = with_metadata(object);
            object["apiVersion"] = json!(kind.api_version);
            let patch = dialects::status(of.dialect, &object, &state(of)?, self.now())?;
            let objects = Api::namespaced_with(self.writer.client.clone(), &of.namespace, kind);
            Some((objects, of.object().to_owned(), patch))
        };
        groups.into_iter().filter_map(patch).collect()
    }

    /// Where a gang stands, in words that every dialect has.
    fn state_of(&self, name: &Arc<str>, verdict: &Verdict, told: &StatusReport) -> State {
        let node_would_help = self.node_would_help(name, verdict, told);
        match verdict {
            Verdict::Waiting { .. } | Verdict::Stopping => {
                State::Waiting { why: told.message.clone(), node_would_help }
            }
            // On what there is it can never run, but somebody may add to that.
            Verdict::Impossible { .. } if node_would_help => {
                State::Waiting { why: told.message.clone(), node_would_help }
            }
            Verdict::Provisioning { ready, total, .. } => {
                State::Provisioning { ready: *ready, total: *total }
            }
            Verdict::Admitted => State::Admitted,
            Verdict::Running => self.counts(name),
            Verdict::Impossible { .. } => State::Infeasible { why: told.message.clone() },
        }
    }

    /// How many of a gang's pods run, are done and failed.
    fn counts(&self, name: &str) -> State {
        let pods = self.gangs.get(name).map(|group| &group.pods).into_iter().flatten();
        count_pods(pods.filter_map(|key| self.cache.pods.get(key)))
    }

    /// What keeps a gang besides the planner: what it is tied to, or volumes that are being made.
    fn ties_in_words(&self, name: &str, phase: &GangPhase) -> Option<String> {
        let group = self.gangs.get(name)?;
        match phase {
            phase if waits(phase) => group.wait_reason.as_ref().map(|why| format!("waits: {why}")),
            GangPhase::Admitted | GangPhase::Running => {
                let choosing = group.volume_binding.as_ref()?;
                self.pods_by_state(group).bound.is_empty().then(|| choosing.describe())
            }
            _ => None,
        }
    }

    /// Whether where a gang may go depends on where others are.
    fn is_kept_by_others(&self, name: &str) -> bool {
        self.gangs
            .get(name)
            .is_some_and(|group| !group.pod_constraints.values().all(PodConstraints::is_fixed))
    }

    /// A gang or a pod is no more.
    pub(crate) fn forget_status(&mut self, name: &str) {
        self.written_status.gangs.remove(name);
        self.written_status.stops.remove(name);
        self.written_status.untold.remove(name);
    }

    pub(crate) fn forget_pod_status(&mut self, key: &str) {
        self.written_status.pods.remove(key);
    }
}

/// How many of these pods run, are done and failed.
pub(crate) fn count_pods<'a>(pods: impl Iterator<Item = &'a Arc<Pod>>) -> State {
    let (mut running, mut succeeded, mut failed) = (0, 0, 0);
    for pod in pods {
        match &*pod.status.phase {
            "Succeeded" => succeeded += 1,
            "Failed" => failed += 1,
            _ if pod.node().is_some() => running += 1,
            _ => {}
        }
    }
    State::Running { running, succeeded, failed }
}

/// Whether it is worth trying again what was refused.
fn is_failure(gang: &str, said: Option<ApiError>) -> bool {
    let Some(said) = said.filter(|said| !matches!(said, ApiError::NotFound | ApiError::NotLeader))
    else {
        return false;
    };
    tracing::warn!(gang, %said, "its status was not written");
    true
}

/// Whether somebody may want to know what keeps it.
fn waits(phase: &GangPhase) -> bool {
    matches!(phase, GangPhase::Waiting | GangPhase::Infeasible | GangPhase::Provisioning)
}

/// What is written on a gang's object. That a merge patch leaves alone what it does not name, and that a list is replaced as
/// a whole, is why what no longer holds is named and the condition is there each time.
fn status(told: &StatusReport, before: Option<&Value>, now: Time) -> Value {
    let conditions = gang_conditions(told.phase, told.reason, &told.message, before, now);
    let mut status = json!({"status": {
        "phase": told.phase,
        "reason": told.reason,
        "message": told.message,
        "members": told.members,
        "progress": told.members.to_string(),
        "order": told.order,
        "position": told.position,
        "waitingSince": told.waits_since.map(Stamp),
        "expectedStart": told.expected.map(Stamp),
        "restarts": told.restarts,
        "failedOrders": told.failed_orders,
        "lastFailedOrder": told.last_failed_order.map(Stamp),
        "conditions": conditions,
    }});
    // Who runs was admitted, and keeps when; who waits again was not.
    if told.phase != GangPhase::Running {
        status["status"]["admittedAt"] = json!(told.admitted.map(Stamp));
    }
    status["status"]["runningSince"] = json!(told.runs_since.map(Stamp));
    status
}

/// Why a gang waits, in one word.
fn reason(world: &World, blockers: &[Blocker]) -> &'static str {
    match blockers.first() {
        None => "Waiting",
        Some(Blocker::QueueClosed { queue }) if world.queue(*queue).gone => UNKNOWN_QUEUE,
        Some(Blocker::QueueClosed { .. }) => QUEUE_CLOSED,
        Some(Blocker::Behind(_) | Blocker::NotConsidered | Blocker::SearchSpent) => "QueuedBehind",
        Some(Blocker::QueueLimit { .. }) => "QueueLimit",
        Some(Blocker::UserLimit { .. }) => "UserLimit",
        Some(Blocker::NotAllowed { excess: Excess::Namespace, .. }) => "NamespaceNotAllowed",
        Some(Blocker::NotAllowed { excess: Excess::Priority { .. }, .. }) => "PriorityNotAllowed",
        Some(Blocker::NotAllowed { excess: Excess::NonPreemptible, .. }) => {
            "NonPreemptibleNotAllowed"
        }
        Some(Blocker::NotAllowed { .. }) => "NotAllowed",
        Some(Blocker::BeyondGuarantee { .. }) => "BeyondGuarantee",
        Some(Blocker::PoolsFull { .. }) => "PoolLimitReached",
        Some(Blocker::ProvisioningOff) => "InsufficientCapacity",
        Some(Blocker::CheaperToWait { .. }) => "CheaperToWait",
        Some(_) => "InsufficientCapacity",
    }
}
