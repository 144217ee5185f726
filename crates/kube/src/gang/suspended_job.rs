//! Suspended Jobs that Muster unsuspends when it has capacity: a gang before any of its pods exists.
//!
//! A Job with `suspend: true` and the annotation `muster.sh/admit: unsuspend` is planned by its template, as if its pods
//! existed. When its gang has its seats, and the placement is written, Muster unsuspends it; to stop the gang it suspends
//! the Job again, and the Job controller deletes the pods. Any scheduler may bind them: Muster binds its own to their seats,
//! and follows where another scheduler put the others.
//!
//! Not here: Jobs that another known workload owns, such as those of a JobSet. These are not gangs by themselves.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::ResourceExt;
use kube::api::{Api, DynamicObject, Patch};
use muster_api::dialects::{self, Dialect, Terms};
use muster_api::pod::PodSpec;
use muster_api::workloads::{WorkloadKind, WorkloadRole, gang_owner, is_suspended};
use muster_core::Event;
use muster_core::event::RoleSeats;
use muster_core::gang::{GangSpec, Phase, Seat};
use muster_core::id::GangId;
use muster_core::plan::StopReason;
use serde_json::{Value, json};

use crate::api::retry::ApiError;
use crate::cache::kinds::KindRole;
use crate::cache::store::Key;
use crate::effects::outcome::{Outcome, RETRY_PAUSE};
use crate::features::Feature;
use crate::gang::identity::GangSource;
use crate::gang::record::GangRecord;
use crate::host::Host;
use crate::objects::pod::{Pod, PodStatus};
use crate::schedule::phase::PodsByState;

/// The annotation by which a Job asks to be unsuspended when there is capacity for all of it. A label of this name does as
/// well.
const ADMIT: &str = "muster.sh/admit";
const UNSUSPEND: &str = "unsuspend";
const JOBS: KindRole = KindRole::Workload(WorkloadKind::Job);

/// Whether a Job asks to be unsuspended.
fn asks_for_admission(job: &DynamicObject) -> bool {
    let admit = job.annotations().get(ADMIT).or_else(|| job.labels().get(ADMIT));
    admit.is_some_and(|admit| admit == UNSUSPEND)
}

/// Whether a Job is suspended.
fn is_job_suspended(job: &DynamicObject) -> bool {
    is_suspended(WorkloadKind::Job, &job.data)
}

/// Whether a Job is complete or failed, or is being deleted and creates no more pods.
fn is_over(job: &DynamicObject) -> bool {
    if job.metadata.deletion_timestamp.is_some() {
        return true;
    }
    let conditions = job.data.pointer("/status/conditions").and_then(Value::as_array);
    let ended = |one: &Value| {
        matches!(one["type"].as_str(), Some("Complete" | "Failed")) && one["status"] == "True"
    };
    conditions.into_iter().flatten().any(ended)
}

impl Host {
    /// The Job of a gang, if Muster suspends and unsuspends it.
    pub(crate) fn managed_job(&self, source: &GangSource) -> Option<&Arc<DynamicObject>> {
        let GangSource::Owner { kind: WorkloadKind::Job, namespace, owner, .. } = source else {
            return None;
        };
        self.object(JOBS, namespace, owner).filter(|job| asks_for_admission(job))
    }

    /// The source of a Job's gang, if the Job asks to be unsuspended and no owner above it is a gang.
    pub(crate) fn source_of_job(&self, job: &DynamicObject) -> Option<GangSource> {
        let namespace: Arc<str> = job.namespace()?.into();
        let above = self.owner_chain(&namespace, job.metadata.owner_references.as_deref());
        if !asks_for_admission(job) || gang_owner(&above, job.labels()).is_some() {
            return None;
        }
        // Pods that name a group belong to it, whatever owns them.
        let template = job.data.pointer("/spec/template");
        let metadata = |of: &str| -> BTreeMap<String, String> {
            let found = template.and_then(|template| template.pointer(of));
            found.and_then(|map| serde_json::from_value(map.clone()).ok()).unwrap_or_default()
        };
        let spec = template.and_then(|template| template.get("spec")).cloned().unwrap_or_default();
        let spec: PodSpec = serde_json::from_value(spec).unwrap_or_default();
        let (labels, annotations) =
            (metadata("/metadata/labels"), metadata("/metadata/annotations"));
        if dialects::group_of(&labels, &annotations, &spec, &namespace).is_some() {
            return None;
        }
        let (kind, name): (_, Arc<str>) = (WorkloadKind::Job, job.name_any().into());
        let (gang, owner) = (name.clone(), name.clone());
        Some(GangSource::Owner { kind, namespace, gang, owner, templates: (kind, name) })
    }

    /// Whether Muster manages a pod: by the pod's own scheduler name or gate, or because Muster unsuspended its Job.
    pub(crate) fn is_managed(&self, pod: &Pod) -> bool {
        let owners = pod.metadata.owner_references.iter().flatten();
        let of_job = || owners.into_iter().any(|owner| owner.kind == "Job");
        let key: Key = match (&pod.metadata.namespace, &pod.metadata.name) {
            (Some(namespace), Some(name)) => format!("{namespace}/{name}").into(),
            (None, name) => name.clone().unwrap_or_default().into(),
            (_, None) => return false,
        };
        self.is_served(&key, pod) || (of_job() && self.managed_job(&self.source_of(pod)).is_some())
    }

    /// Whether a gang is a Job that waits to be unsuspended.
    pub(crate) fn awaits_unsuspend(&self, record: &GangRecord) -> bool {
        self.managed_job(&record.source).is_some_and(|job| is_job_suspended(job) && !is_over(job))
    }

    /// Whether a gang is a Job that is not over, so that pods may still be created.
    pub(crate) fn is_job_unfinished(&self, record: &GangRecord) -> bool {
        self.managed_job(&record.source).is_some_and(|job| !is_over(job))
            && !self.is_superseded(record)
    }

    /// The pods that a Job will have besides those it has: of a Job that waits to be unsuspended, or of one that has its seats
    /// and was unsuspended, and whose controller has not created them yet.
    pub(crate) fn pods_to_come(
        &self,
        record: &GangRecord,
        settled: bool,
        has: usize,
    ) -> Result<Vec<(Key, Arc<Pod>)>, String> {
        let GangSource::Owner { namespace, owner, .. } = &record.source else {
            return Ok(Vec::new());
        };
        let has_more = self.awaits_unsuspend(record) || (settled && self.is_job_unfinished(record));
        if !has_more {
            return Ok(Vec::new());
        }
        let mut pods = Vec::new();
        for role in self.templates(record)?.unwrap_or_default() {
            if let Some(why) = self.config.over_member_limit(role.count.into()) {
                return Err(why);
            }
            for at in has..role.count as usize {
                let pod = pod_from_template(namespace, &format!("{owner}-{at}"), &role);
                pods.push((format!("{namespace}/{owner}-{at}").into(), Arc::new(pod)));
            }
        }
        Ok(pods)
    }

    /// The terms of a Job's gang, from its template and its own metadata.
    pub(crate) fn terms_of_job(&self, record: &GangRecord) -> Result<Terms, Vec<String>> {
        let Some(job) = self.managed_job(&record.source) else { return Ok(Terms::default()) };
        let read = |labels, annotations| dialects::pod_terms(Dialect::Muster, labels, annotations);
        let mut terms = Terms::default();
        let roles = self.templates(record).ok().flatten().unwrap_or_default();
        for role in &roles {
            terms = terms.over(read(&role.labels, &role.annotations)?);
            terms.priority_class = terms.priority_class.or(role
                .template
                .priority_class_name
                .as_deref()
                .map(Into::into));
            let pod = pod_from_template("", "", role);
            if !self.config.serves(&pod) {
                // Another scheduler binds all pods, not only those that have seats.
                terms.min = Some(role.count);
            }
        }
        Ok(terms.over(read(job.labels(), job.annotations())?))
    }

    /// Withdraws a gang that was planned from its Job's template and no longer waits: the Job was unsuspended by a user, is
    /// over, or does not ask any more. That happens before anything is provisioned for it.
    pub(crate) fn withdraw_unwanted_job(&mut self, name: &Arc<str>) {
        let Some(record) = self.gangs.get(name).filter(|record| record.planned_from_template)
        else {
            return;
        };
        if self.awaits_unsuspend(record) {
            return;
        }
        let Some(id) = self.world.gang_named(name) else { return };
        if matches!(
            self.world.gang(id).expect("the World has the gang").phase,
            Phase::Waiting | Phase::Assembling(_)
        ) {
            tracing::info!(gang = &**name, "its Job no longer waits to be unsuspended");
            self.apply_event(&Event::GangCancelled(id));
            let record = self.gangs.get_mut(name).expect("the gang has a record");
            (record.submitted_spec, record.planned_from_template) = (None, false);
            self.dirty.gangs.insert(name.clone());
        }
    }

    /// Unsuspends the Job of a gang that has its seats. Returns `false` if the Job was suspended again by a user: then the gang
    /// is stopped.
    pub(crate) fn resume_job(&mut self, name: &Arc<str>, id: GangId) -> bool {
        let Some(record) = self.gangs.get(name) else { return true };
        if self.is_superseded(record) {
            return true; // the Job belongs to the successor
        }
        let Some(job) = self.managed_job(&record.source).cloned() else { return true };
        let (recorded, runs) = (record.placement_written, record.job_seen_running);
        match is_job_suspended(&job) {
            false => {
                self.gangs.get_mut(name).expect("the gang has a record").job_seen_running = true;
            }
            true if runs => {
                tracing::info!(gang = &**name, "its Job was suspended");
                self.back_off_because(name, "its Job was suspended while it ran");
                self.stop_gang(id, StopReason::Moved);
                return false;
            }
            true if recorded && !is_over(&job) => self.set_suspend(name, &job, false),
            true => {}
        }
        true
    }

    /// Suspends the Job of a gang that stops. `None` if it has none; else whether the Job is observed suspended.
    pub(crate) fn suspend_job(&mut self, name: &Arc<str>) -> Option<bool> {
        let record = self.gangs.get(name).filter(|record| !self.is_superseded(record))?;
        let job = self.managed_job(&record.source).filter(|job| !is_over(job))?.clone();
        if is_job_suspended(&job) {
            return Some(true);
        }
        self.set_suspend(name, &job, true);
        Some(false)
    }

    /// Whether a Job is unsuspended and not all its pods are on nodes.
    pub(crate) fn waits_for_job(&self, record: &GangRecord, spec: &GangSpec) -> bool {
        let placed = record.pods.iter().filter_map(|key| self.cache.pods.get(key));
        let placed = placed.filter(|pod| pod.node().is_some()).count();
        let needs: u32 = spec.roles.iter().map(|role| role.min).sum();
        let runs = self
            .managed_job(&record.source)
            .is_some_and(|job| !is_job_suspended(job) && !is_over(job));
        runs && placed < needs as usize
    }

    /// Writes `suspend` of a Job, once for each value.
    fn set_suspend(&mut self, name: &Arc<str>, job: &DynamicObject, suspend: bool) {
        let record = self.gangs.get_mut(name).expect("the gang has a record");
        if record.requested_suspend == Some(suspend)
            || self.config.disabled.has(Feature::SuspendedJobs)
        {
            return;
        }
        record.requested_suspend = Some(suspend);
        let Some(kind) = self.sources.resource(JOBS) else { return };
        let (namespace, job_name) = (job.namespace().unwrap_or_default(), job.name_any());
        let jobs: Api<DynamicObject> =
            Api::namespaced_with(self.writer.client.clone(), &namespace, kind);
        let uid = job.metadata.uid.clone().unwrap_or_default();
        let writer = self.writer.for_namespace(&namespace);
        let (outcomes, gang) = (self.outcomes.clone(), name.clone());
        self.ordered_writes.write(&format!("{name}#job").into(), async move {
            let patch =
                Patch::Merge(json!({"metadata": {"uid": uid}, "spec": {"suspend": suspend}}));
            match writer.patch_with_uid(&jobs, &job_name, &uid, &patch).await {
                Ok(()) | Err(ApiError::NotFound | ApiError::NotLeader) => {}
                Err(error) => {
                    tracing::warn!(gang = &*gang, %error, suspend, "`suspend` of its Job was not set");
                    tokio::time::sleep(RETRY_PAUSE).await;
                    let _ = outcomes.send(Outcome::JobPatchFailed(gang));
                }
            }
        });
    }

    /// Moves the seats of a Job's pods to where another scheduler has bound them.
    pub(crate) fn seat_where_observed(
        &mut self,
        name: &Arc<str>,
        id: GangId,
        by_state: &PodsByState,
    ) {
        let Some(record) = self.gangs.get(name) else { return };
        if self.managed_job(&record.source).is_none() {
            return;
        }
        let gang = self.world.gang(id).expect("the World has the gang");
        let waits = matches!(gang.phase, Phase::Waiting);
        let there = self.occupied_seats(record, &by_state.bound);
        let Some(sitting) = seats_after_move(&gang.seats, &there).filter(|_| gang.resize.is_none())
        else {
            return;
        };
        if self.seat_observed_pods(name, id, self.now(), sitting) {
            if waits {
                tracing::info!(gang = &**name, "its pods run although it was not admitted");
            }
            self.write_placement(name, id);
        }
    }
}

/// The seats of members of which some are observed on nodes: those where they are, the others on the seats that are left.
/// `None` if every observed member has a seat on its node.
pub(crate) fn seats_after_move(seats: &[Seat], there: &[RoleSeats]) -> Option<Vec<RoleSeats>> {
    type Place = (u16, muster_core::id::NodeIdx);
    let mut open: BTreeMap<Place, u32> = BTreeMap::new();
    for seat in seats {
        *open.entry((seat.role, seat.node)).or_default() += u32::from(seat.members);
    }
    let mut elsewhere: BTreeMap<u16, u32> = BTreeMap::new();
    for one in there {
        let left = open.entry((one.role, one.node)).or_default();
        let taken = u32::from(one.members).min(*left);
        *left -= taken;
        *elsewhere.entry(one.role).or_default() += u32::from(one.members) - taken;
    }
    if elsewhere.values().all(|members| *members == 0) {
        return None;
    }
    let mut sitting = there.to_vec();
    for ((role, node), left) in open {
        let gone = elsewhere.get_mut(&role).map_or(0, |members| {
            let gone = left.min(*members);
            *members -= gone;
            gone
        });
        let Some(members) = u16::try_from(left - gone).ok().filter(|members| *members > 0) else {
            continue;
        };
        match sitting.iter_mut().find(|one| one.role == role && one.node == node) {
            Some(one) => one.members += members,
            None => sitting.push(RoleSeats { role, node, members }),
        }
    }
    Some(sitting)
}

/// A pod of a template.
fn pod_from_template(namespace: &str, name: &str, role: &WorkloadRole) -> Pod {
    Pod {
        metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(namespace.to_owned()),
            labels: Some(role.labels.clone()),
            annotations: Some(role.annotations.clone()),
            ..Default::default()
        },
        spec: role.template.clone(),
        status: PodStatus::default(),
    }
}

#[cfg(test)]
mod tests {
    use muster_core::device::DeviceSet;
    use muster_core::id::NodeIdx;

    use crate::gang::suspended_job::*;

    fn seat(node: u32, members: u16) -> Seat {
        Seat { devices: DeviceSet::default(), node: NodeIdx(node), role: 0, members }
    }

    fn on(places: &[(u32, u16)]) -> Vec<RoleSeats> {
        let one = |(node, members): &(u32, u16)| RoleSeats {
            role: 0,
            node: NodeIdx(*node),
            members: *members,
        };
        places.iter().map(one).collect()
    }

    #[test]
    fn pod_bound_elsewhere_frees_one_seat_and_no_pod_counts_twice() {
        let seats = [seat(1, 2), seat(2, 2)];
        // Observed members by node, and the seats after that.
        type Case<'a> = (&'a [(u32, u16)], Option<&'a [(u32, u16)]>);
        let cases: [Case<'_>; 5] = [
            (&[], None),
            (&[(1, 1), (2, 2)], None),
            (&[(3, 1)], Some(&[(3, 1), (1, 1), (2, 2)])),
            (&[(1, 3)], Some(&[(1, 3), (2, 1)])),
            (&[(3, 2), (1, 2)], Some(&[(3, 2), (1, 2)])),
        ];
        for (there, then) in cases {
            assert_eq!(seats_after_move(&seats, &on(there)), then.map(on), "{there:?}");
        }
    }
}
