//! Jobs that are kept suspended until there is room: a gang before any of its pods exists.
//!
//! A Job with `suspend: true` and the annotation `muster.sh/admit: unsuspend` is planned by its template, as if its pods
//! were there. When its gang has its seats, and that is written down, Muster takes the suspension back; to stop the gang
//! it suspends the Job again, and the Job's own controller removes the pods. Whose scheduler binds them is all the same:
//! Muster's puts them on the seats, and of another's it is seen where they went.
//!
//! Not here: Jobs that something else made and Muster knows, such as those of a JobSet. These are not gangs by themselves.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::ResourceExt;
use kube::api::{Api, DynamicObject, Patch};
use muster_api::dialects::{self, Dialect, Terms};
use muster_api::pod::PodSpec;
use muster_api::workloads::{WorkloadKind, WorkloadRole, gang_owner, is_suspended};
use muster_core::Event;
use muster_core::event::Sitting;
use muster_core::gang::{GangSpec, Phase, Seat};
use muster_core::id::GangId;
use muster_core::plan::StopReason;
use serde_json::{Value, json};

use crate::api::retry::Said;
use crate::cache::kinds::KindRole;
use crate::cache::store::Key;
use crate::effects::outcome::Outcome;
use crate::features::Feature;
use crate::gang::identity::GangSource;
use crate::gang::record::GangRecord;
use crate::host::Host;
use crate::objects::pod::{Pod, PodStatus};
use crate::schedule::phase::PodsByState;
use crate::schedule::placement::AGAIN;

/// How a Job asks to be let run when there is room for all of it. A label of this name does as well.
const ADMIT: &str = "muster.sh/admit";
const UNSUSPEND: &str = "unsuspend";
const JOBS: KindRole = KindRole::Workload(WorkloadKind::Job);

/// Whether a Job asks for it.
fn asks_for_admission(job: &DynamicObject) -> bool {
    let said = job.annotations().get(ADMIT).or_else(|| job.labels().get(ADMIT));
    said.is_some_and(|said| said == UNSUSPEND)
}

/// Whether a Job is held back.
fn is_job_suspended(job: &DynamicObject) -> bool {
    is_suspended(WorkloadKind::Job, &job.data)
}

/// Whether a Job has run to its end, or is being deleted and makes no more pods.
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
    /// The Job that a gang is, if Muster lets it run and stops it.
    pub(crate) fn managed_job(&self, source: &GangSource) -> Option<&Arc<DynamicObject>> {
        let GangSource::Owner { kind: WorkloadKind::Job, namespace, owner, .. } = source else {
            return None;
        };
        self.object(JOBS, namespace, owner).filter(|job| asks_for_admission(job))
    }

    /// What a Job is as a gang, if it asks to be let run and nothing above it is one.
    pub(crate) fn source_of_job(&self, job: &DynamicObject) -> Option<GangSource> {
        let namespace: Arc<str> = job.namespace()?.into();
        let above = self.owner_chain(&namespace, job.metadata.owner_references.as_deref());
        if !asks_for_admission(job) || gang_owner(&above, job.labels()).is_some() {
            return None;
        }
        // Pods that name a group are of that group, whatever makes them.
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

    /// Whether a pod is Muster's: by what it says itself, or because Muster has let its Job run.
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

    /// Whether a gang is a Job that waits to be let run.
    pub(crate) fn awaits_unsuspend(&self, record: &GangRecord) -> bool {
        self.managed_job(&record.source).is_some_and(|job| is_job_suspended(job) && !is_over(job))
    }

    /// Whether a gang is a Job that is not over, so that its pods may be yet to come.
    pub(crate) fn is_job_unfinished(&self, record: &GangRecord) -> bool {
        self.managed_job(&record.source).is_some_and(|job| !is_over(job))
            && !self.is_superseded(record)
    }

    /// The pods that a Job will have besides so many that it has: one that waits to be let run, or one that has its seats
    /// and was, and whose controller has not made them yet.
    pub(crate) fn pods_to_come(
        &self,
        record: &GangRecord,
        settled: bool,
        has: usize,
    ) -> Result<Vec<(Key, Arc<Pod>)>, String> {
        let GangSource::Owner { namespace, owner, .. } = &record.source else {
            return Ok(Vec::new());
        };
        let comes = self.awaits_unsuspend(record) || (settled && self.is_job_unfinished(record));
        if !comes {
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

    /// What a Job says of its gang, on its template and on itself.
    pub(crate) fn terms_of_job(&self, record: &GangRecord) -> Result<Terms, Vec<String>> {
        let Some(job) = self.managed_job(&record.source) else { return Ok(Terms::default()) };
        let said = |labels, annotations| dialects::pod_terms(Dialect::Muster, labels, annotations);
        let mut terms = Terms::default();
        let roles = self.templates(record).ok().flatten().unwrap_or_default();
        for role in &roles {
            terms = terms.over(said(&role.labels, &role.annotations)?);
            terms.priority_class = terms.priority_class.or(role
                .template
                .priority_class_name
                .as_deref()
                .map(Into::into));
            let pod = pod_from_template("", "", role);
            if !self.config.serves(&pod) {
                // Another scheduler binds all pods there are, not only those that there are seats for.
                terms.min = Some(role.count);
            }
        }
        Ok(terms.over(said(job.labels(), job.annotations())?))
    }

    /// A gang that was planned by what its Job would be is none any more: it was let run by somebody else, or is over, or
    /// does not ask for it. It is taken back before anything is bought for it.
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
            self.world.gang(id).expect("named").phase,
            Phase::Waiting | Phase::Assembling(_)
        ) {
            tracing::info!(gang = &**name, "not to be let run any more");
            self.apply_event(&Event::GangCancelled(id));
            let record = self.gangs.get_mut(name).expect("just seen");
            (record.submitted_spec, record.planned_from_template) = (None, false);
            self.dirty.gangs.insert(name.clone());
        }
    }

    /// Lets the Job of a gang that has its seats run. When somebody holds it back again the gang stops, and goes on no
    /// more.
    pub(crate) fn resume_job(&mut self, name: &Arc<str>, id: GangId) -> bool {
        let Some(record) = self.gangs.get(name) else { return true };
        if self.is_superseded(record) {
            return true; // that Job is another's
        }
        let Some(job) = self.managed_job(&record.source).cloned() else { return true };
        let (recorded, runs) = (record.placement_written, record.job_seen_running);
        match is_job_suspended(&job) {
            false => self.gangs.get_mut(name).expect("just seen").job_seen_running = true,
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

    /// Holds the Job of a gang that stops back. `None` if it has none; else whether that is seen to be done.
    pub(crate) fn suspend_job(&mut self, name: &Arc<str>) -> Option<bool> {
        let record = self.gangs.get(name).filter(|record| !self.is_superseded(record))?;
        let job = self.managed_job(&record.source).filter(|job| !is_over(job))?.clone();
        if is_job_suspended(&job) {
            return Some(true);
        }
        self.set_suspend(name, &job, true);
        Some(false)
    }

    /// Whether a Job was let run and has not had all its pods on nodes at some time.
    pub(crate) fn waits_for_job(&self, record: &GangRecord, spec: &GangSpec) -> bool {
        let placed = record.pods.iter().filter_map(|key| self.cache.pods.get(key));
        let placed = placed.filter(|pod| pod.node().is_some()).count();
        let needs: u32 = spec.roles.iter().map(|role| role.min).sum();
        let runs = self
            .managed_job(&record.source)
            .is_some_and(|job| !is_job_suspended(job) && !is_over(job));
        runs && placed < needs as usize
    }

    fn set_suspend(&mut self, name: &Arc<str>, job: &DynamicObject, suspend: bool) {
        let record = self.gangs.get_mut(name).expect("just seen");
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
        let writer = self.writer.within(&namespace);
        let (outcomes, gang) = (self.outcomes.clone(), name.clone());
        self.ordered_writes.write(&format!("{name}#job").into(), async move {
            let patch =
                Patch::Merge(json!({"metadata": {"uid": uid}, "spec": {"suspend": suspend}}));
            match writer.patch_this(&jobs, &job_name, &uid, &patch).await {
                Ok(()) | Err(Said::Gone | Said::NotLeader) => {}
                Err(said) => {
                    tracing::warn!(gang = &*gang, %said, suspend, "its job was not told");
                    tokio::time::sleep(AGAIN).await;
                    let _ = outcomes.send(Outcome::JobPatchFailed(gang));
                }
            }
        });
    }

    /// Counts the pods of a Job where another scheduler has put them. Their seats were only where they might have gone.
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
        let gang = self.world.gang(id).expect("followed");
        let waits = matches!(gang.phase, Phase::Waiting);
        let there = self.occupied_seats(record, &by_state.bound);
        let Some(sitting) = seats_after_move(&gang.seats, &there).filter(|_| gang.resize.is_none())
        else {
            return;
        };
        if self.seat_observed_pods(name, id, self.now(), sitting) {
            if waits {
                tracing::info!(gang = &**name, "runs without having been let");
            }
            self.write_placement(name, id);
        }
    }
}

/// Where members sit of whom some are seen: those where they are, the others on seats that are left. `None` if everybody
/// who is seen has a seat there.
pub(crate) fn seats_after_move(seats: &[Seat], there: &[Sitting]) -> Option<Vec<Sitting>> {
    type Place = (u16, muster_core::id::NodeIdx);
    let mut open: BTreeMap<Place, u32> = BTreeMap::new();
    for seat in seats {
        *open.entry((seat.role, seat.node)).or_default() += u32::from(seat.members);
    }
    let mut astray: BTreeMap<u16, u32> = BTreeMap::new();
    for one in there {
        let left = open.entry((one.role, one.node)).or_default();
        let taken = u32::from(one.members).min(*left);
        *left -= taken;
        *astray.entry(one.role).or_default() += u32::from(one.members) - taken;
    }
    if astray.values().all(|astray| *astray == 0) {
        return None;
    }
    let mut sitting = there.to_vec();
    for ((role, node), left) in open {
        let gone = astray.get_mut(&role).map_or(0, |astray| {
            let gone = left.min(*astray);
            *astray -= gone;
            gone
        });
        let Some(members) = u16::try_from(left - gone).ok().filter(|members| *members > 0) else {
            continue;
        };
        match sitting.iter_mut().find(|one| one.role == role && one.node == node) {
            Some(one) => one.members += members,
            None => sitting.push(Sitting { role, node, members }),
        }
    }
    Some(sitting)
}

/// A pod as its template says.
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

    fn on(places: &[(u32, u16)]) -> Vec<Sitting> {
        let one = |(node, members): &(u32, u16)| Sitting {
            role: 0,
            node: NodeIdx(*node),
            members: *members,
        };
        places.iter().map(one).collect()
    }

    #[test]
    fn who_is_elsewhere_leaves_a_seat_and_nobody_is_counted_twice() {
        let seats = [seat(1, 2), seat(2, 2)];
        // Who is where, and who sits where then.
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
