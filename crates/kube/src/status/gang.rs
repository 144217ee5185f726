//! Writes the status of each gang: on its Gang object, on group objects of other dialects, and on pods that wait.
//!
//! A status is written when it changes, and at a bounded rate: a message that counts seconds would be written every cycle.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::api::{Api, DynamicObject};
use kube::runtime::events::EventType;
use muster_api::crd::GangPhase;
use muster_api::dialects::{self, GroupRef, State, StatusPatch};
use muster_core::event::Refusal;
use muster_core::gang::Phase;
use muster_core::id::GangId;
use muster_core::time::Span;
use muster_core::verdict::Verdict;
use rustc_hash::FxHashMap;
use serde_json::json;

use crate::api::retry::ApiError;
use crate::cache::store::{Key, split_key};
use crate::effects::outcome::{Outcome, RETRY_PAUSE};
use crate::gang::build::with_metadata;
use crate::gang::identity::GangSource;
use crate::gang::record::GangRecord;
use crate::host::Host;
use crate::status::gang_object::{group_write_key, write_group_status, write_or_create};
use crate::status::reasons::{LEFT_OUT, StatusReport, UNKNOWN_QUEUE, WAITING_FOR_MEMBERS};

/// How long a status of the same phase may be out of date.
const REWRITE_INTERVAL: Duration = Duration::from_secs(5);
/// The shortest interval between two comparisons of all statuses: a burst of changes is compared once.
const COMPARE_INTERVAL: Duration = Duration::from_millis(100);
/// How long a gang must wait before a status says why: most gangs wait for less than it takes to read.
const FIRST_REPORT_AFTER: Span = Span::secs(2);

/// The last written status of each gang and pod.
#[derive(Debug, Default)]
pub(crate) struct WrittenStatus {
    /// When the statuses were last compared, which goes through all gangs.
    compared: Option<Instant>,
    /// Whether the last attempt to compare was too early.
    is_deferred: bool,
    gangs: FxHashMap<Arc<str>, Written>,
    /// Gangs whose stop was recorded as an Event, and whose status may not say so yet.
    stops: BTreeSet<Arc<str>>,
    pub(crate) pods: FxHashMap<Key, (&'static str, String)>,
    /// Gangs with pods that lack the condition of the last status: they were created later, or the write failed.
    pods_outdated: BTreeSet<Arc<str>>,
}

impl WrittenStatus {
    /// A pod of a gang lacks the condition of the last status.
    pub(crate) fn rewrite_pods(&mut self, gang: &Arc<str>) {
        self.pods_outdated.insert(gang.clone());
    }

    /// Whether it is time to compare the statuses.
    fn may_compare(&mut self, now: Instant) -> bool {
        self.is_deferred = self.compared.is_some_and(|at| now < at + COMPARE_INTERVAL);
        if !self.is_deferred {
            self.compared = Some(now);
        }
        !self.is_deferred
    }

    /// Whether the stop of a gang was recorded as an Event.
    #[cfg(test)]
    pub(crate) fn is_stop_recorded(&self, name: &str) -> bool {
        self.stops.contains(name)
    }

    /// The time until the statuses are compared, if that was deferred.
    pub(crate) fn defer(&self, now: Instant) -> Option<Duration> {
        let due = self.compared.filter(|_| self.is_deferred)? + COMPARE_INTERVAL;
        Some(due.saturating_duration_since(now))
    }
}

/// The last written status of one gang, and when it was written.
#[derive(Debug)]
struct Written {
    report: StatusReport,
    at: Instant,
}

impl Host {
    /// Writes the statuses of gangs that have changed, if it is time to compare.
    pub(crate) fn write_verdicts(&mut self) {
        if !self.written_status.may_compare(Instant::now()) {
            return;
        }
        let verdicts = std::mem::take(&mut self.verdicts);
        for (id, verdict) in &verdicts {
            let Some(gang) = self.world.gang(*id) else { continue };
            let name = gang.spec.name.clone();
            let waits_for_volumes =
                self.gangs.get(&name).is_some_and(|record| record.volume_binding.is_some());
            if matches!(gang.phase, Phase::Admitted { .. }) && !waits_for_volumes {
                continue; // the placement in its status says so
            }
            let is_being_bound =
                |record: &GangRecord| record.binding_since.is_some() && !record.was_fully_bound;
            if *verdict == Verdict::Running && self.gangs.get(&name).is_some_and(is_being_bound) {
                self.has_deferred_writes = true; // written when its last pod is bound
                continue;
            }
            let waits = matches!(verdict, Verdict::Waiting { .. } | Verdict::Provisioning { .. });
            if waits && self.now().since(gang.waits_since) < FIRST_REPORT_AFTER {
                self.has_deferred_writes = true;
                continue;
            }
            let report = self.status_report(*id, verdict);
            let written = self.written_status.gangs.get(&name);
            if written.is_some_and(|written| written.report == report) {
                self.write_outdated_pods(&name, verdict, &report);
                continue;
            }
            let is_new = written.is_none_or(|written| written.report.phase != report.phase);
            let pods = pods_write_key(&name);
            // Earlier writes come first, and this status may be out of date by then.
            let busy = self.ordered_writes.is_busy(&name) || self.ordered_writes.is_busy(&pods);
            let is_recent = written.is_some_and(|written| written.at.elapsed() < REWRITE_INTERVAL);
            if busy || (!is_new && is_recent) {
                self.has_deferred_writes = true;
                continue;
            }
            let is_recorded =
                self.written_status.stops.remove(&name) && report.phase == GangPhase::Stopping;
            if is_new && !is_recorded {
                self.record_phase(&name, report.phase, &report.message);
            }
            self.written_status.pods_outdated.remove(&name);
            self.write_pod_reasons(&name, &pods, verdict, &report);
            let state = self.group_state(&name, verdict, &report);
            self.write_gang(&name, &state, &report);
            self.set_verdict_condition(&name, verdict, report.reason, &report.message);
            self.written_status.gangs.insert(name, Written { report, at: Instant::now() });
        }
        self.verdicts = verdicts;
        self.write_blocked();
    }

    /// Writes the condition of pods that lack it, where the status of the gang itself has not changed.
    fn write_outdated_pods(&mut self, name: &Arc<str>, verdict: &Verdict, report: &StatusReport) {
        if !self.written_status.pods_outdated.contains(name) {
            return;
        }
        let pods = pods_write_key(name);
        if self.ordered_writes.is_busy(&pods) {
            self.has_deferred_writes = true;
            return;
        }
        self.written_status.pods_outdated.remove(name);
        self.write_pod_reasons(name, &pods, verdict, report);
    }

    /// Writes why pods are not a gang, after a moment: most become one as soon as the last of them is created.
    fn write_blocked(&mut self) {
        let blocked: Vec<Arc<str>> = self.gangs.blocked().cloned().collect();
        for name in blocked {
            let Some(record) = self.gangs.get(&name) else { continue };
            let Some((why, since)) = &record.blocked else { continue };
            let is_quarantined = self.quarantine_reason(&name).is_some();
            let reason = match &record.world_refusal {
                _ if is_quarantined => LEFT_OUT,
                Some(Refusal::UnknownQueue(_)) => UNKNOWN_QUEUE,
                _ => WAITING_FOR_MEMBERS,
            };
            let report = StatusReport::not_a_gang(reason, why.clone());
            let is_submitted = self.world.gang_named(&name).is_some();
            let before = self.written_status.gangs.get(&name).map(|written| &written.report);
            let is_written = before == Some(&report);
            let is_news = before.is_none_or(|before| before.reason != report.reason);
            let has_outdated_pods = self.written_status.pods_outdated.contains(&name);
            let has_reader =
                !self.pods_by_state(record).unbound.is_empty() || self.has_no_created_pods(record);
            if is_submitted || (is_written && !has_outdated_pods) || !has_reader {
                continue;
            }
            let pods = pods_write_key(&name);
            let early = since.elapsed().as_millis() < u128::from(FIRST_REPORT_AFTER.0);
            if early || self.ordered_writes.is_busy(&name) || self.ordered_writes.is_busy(&pods) {
                self.has_deferred_writes = true;
                continue;
            }
            if is_news && !is_quarantined {
                // The number of missing pods changes with each that is created; one Event says that some are missing.
                self.record_event(&name, EventType::Normal, (reason, "Schedule"), &report.message);
            }
            self.written_status.pods_outdated.remove(&name);
            self.write_pod_conditions(&name, &pods, reason, &report.message);
            if is_written {
                continue;
            }
            let state = State::Waiting { why: report.message.clone(), node_would_help: false };
            self.write_gang(&name, &state, &report);
            self.written_status.gangs.insert(name, Written { report, at: Instant::now() });
        }
    }

    /// Records an Event when a gang is preempted. It is recorded at once: the gang may have stopped before its status is
    /// compared again.
    pub(crate) fn record_stop(&mut self, name: &Arc<str>, id: GangId) {
        let message = self.status_report(id, &Verdict::Stopping).message;
        self.record_phase(name, GangPhase::Stopping, &message);
        self.written_status.stops.insert(name.clone());
    }

    /// Writes the status of the Gang object, and of group objects of other dialects.
    fn write_gang(&mut self, name: &Arc<str>, state: &State, report: &StatusReport) {
        let Some(record) = self.gangs.get(name) else { return };
        if matches!(record.source, GangSource::Pod { .. }) {
            return;
        }
        // The Gang object may not exist yet: it is created by the write.
        let own = self.gang_api(name).map(|objects| {
            let before = self.gang_object(name).and_then(|gang| gang.data.get("status"));
            let mut status = report.status_patch(before, self.now());
            if let Some(generation) = self.generation_of(name) {
                status["status"]["observedGeneration"] = json!(generation);
            }
            (objects, self.generated_gang_object(name), status)
        });
        let groups = self.group_patches(name, |of| Some(self.state_for(name, of, state)));
        let writer = self.writer.for_namespace(split_key(name).0);
        let (outcomes, gang) = (self.outcomes.clone(), name.clone());
        let may_wait = report.phase == GangPhase::Running;
        if !groups.is_empty() {
            let (writer, outcomes, gang) = (writer.clone(), outcomes.clone(), gang.clone());
            self.ordered_writes.write(&group_write_key(name), async move {
                if may_wait {
                    writer.when_bindings_are_done().await;
                }
                let mut failed = false;
                for (objects, object, patch) in groups {
                    let written = write_group_status(&writer, &objects, &object, &patch).await;
                    failed |= is_failure(&gang, written);
                }
                if failed {
                    tokio::time::sleep(RETRY_PAUSE).await;
                    let _ = outcomes.send(Outcome::StatusNotWritten(gang));
                }
            });
        }
        let Some((objects, object, status)) = own else { return };
        self.ordered_writes.write(name, async move {
            if may_wait {
                writer.when_bindings_are_done().await;
            }
            let written = write_or_create(&writer, &objects, &gang, object, status).await;
            if is_failure(&gang, written) {
                tokio::time::sleep(RETRY_PAUSE).await;
                let _ = outcomes.send(Outcome::StatusNotWritten(gang));
            }
        });
    }

    /// The status patches for the group objects of a gang in other dialects, and where they go.
    pub(crate) fn group_patches(
        &self,
        name: &Arc<str>,
        state: impl Fn(&GroupRef) -> Option<State>,
    ) -> Vec<(Api<DynamicObject>, String, StatusPatch)> {
        let groups = match self.gangs.get(name).map(|record| (&record.source, record)) {
            Some((GangSource::Group(of), _)) => vec![of],
            Some((GangSource::Merged(groups), record)) => {
                groups.iter().filter(|of| self.is_member_group(record, groups, of)).collect()
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

    /// Forgets the written status of a gang.
    pub(crate) fn forget_status(&mut self, name: &str) {
        self.written_status.gangs.remove(name);
        self.written_status.stops.remove(name);
        self.written_status.pods_outdated.remove(name);
    }

    /// Forgets the written condition of a pod.
    pub(crate) fn forget_pod_status(&mut self, key: &str) {
        self.written_status.pods.remove(key);
    }
}

/// The write key of the conditions of a gang's pods.
fn pods_write_key(name: &str) -> Arc<str> {
    format!("{name}#pods").into()
}

/// Whether a write failed in a way that is worth a retry.
fn is_failure(gang: &str, written: Result<(), ApiError>) -> bool {
    match written {
        Ok(()) | Err(ApiError::NotFound | ApiError::NotLeader) => false,
        Err(error) => {
            tracing::warn!(gang, %error, "its status was not written");
            true
        }
    }
}
