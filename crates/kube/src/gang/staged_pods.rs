//! Gangs whose pods are created in stages, or only after the gang is admitted.
//!
//! An operator may create its workers only when the leader runs, or no pod at all before its group is admitted. Waiting until
//! all members exist would then take forever. Such a gang is sized by its owner's templates, or by the total that its group
//! declares; it gets all of its seats at once, and keeps them for the members to come.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::api::DynamicObject;
use muster_api::dialects::{self, Dialect, GroupRef, State};
use muster_api::workloads::{self, WorkloadKind};
use muster_core::gang::Phase;
use serde_json::Value;

use crate::cache::kinds::KindRole;
use crate::cache::store::ObjectChange;
use crate::effects::outcome::Outcome;
use crate::gang::build::labels_and_annotations;
use crate::gang::identity::GangSource;
use crate::gang::record::GangRecord;
use crate::gang::source::controller_of;
use crate::host::Host;

/// The scheduler name that Muster must serve to admit groups without pods. Nothing on such a group names a scheduler.
const VOLCANO: &str = "volcano";
/// How long seats are kept for members that are to be created.
const MEMBER_TIMEOUT: Duration = Duration::from_secs(300);

impl Host {
    /// The workload with a gang's templates: the owner of its pods, or of its group.
    pub(crate) fn workload_of(
        &self,
        record: &GangRecord,
    ) -> Option<(WorkloadKind, &Arc<DynamicObject>)> {
        match &record.source {
            GangSource::Owner { namespace, templates: (kind, name), .. } => {
                Some((*kind, self.object(KindRole::Workload(*kind), namespace, name)?))
            }
            GangSource::Group(of) if is_of_operators(of) => {
                let (kind, object) = self.operator_workload(record)?;
                // A TrainJob has no templates, but the JobSet of its own name that it creates does.
                let set =
                    (kind == WorkloadKind::TrainJob).then(|| self.job_set_of(object)).flatten();
                Some(set.map_or((kind, object), |set| (WorkloadKind::JobSet, set)))
            }
            _ => None,
        }
    }

    /// The workload whose operator created a group. A LeaderWorkerSet's group is owned by the leader's pod, and only labels
    /// name the workload of that pod.
    fn operator_workload(
        &self,
        record: &GangRecord,
    ) -> Option<(WorkloadKind, &Arc<DynamicObject>)> {
        let (_, object) = self.source_object(&record.source)?;
        let namespace = object.metadata.namespace.as_deref()?;
        let mut owner = controller_of(object.metadata.owner_references.as_deref()?)?;
        if workloads::kind_of(&owner.api_version, &owner.kind) == Some(WorkloadKind::Pod) {
            let leader = self.cache.pods.get(&format!("{namespace}/{}", owner.name))?;
            owner = workloads::named_owner(labels_and_annotations(leader).0)?;
        }
        let kind = workloads::kind_of(&owner.api_version, &owner.kind)?;
        Some((kind, self.object(KindRole::Workload(kind), namespace, &owner.name)?))
    }

    fn job_set_of(&self, train: &DynamicObject) -> Option<&Arc<DynamicObject>> {
        let (namespace, name) =
            (train.metadata.namespace.as_deref()?, train.metadata.name.as_deref()?);
        self.object(KindRole::Workload(WorkloadKind::JobSet), namespace, name)
    }

    /// Checks that the templates of a group's later members are observed. The pods of a TrainJob are created by its JobSet,
    /// which therefore exists; pods and workloads are watched separately.
    pub(crate) fn check_stages_observed(&self, record: &GangRecord) -> Result<(), String> {
        let GangSource::Group(of) = &record.source else { return Ok(()) };
        if !is_of_operators(of) || record.pods.is_empty() {
            return Ok(());
        }
        match self.operator_workload(record) {
            Some((WorkloadKind::TrainJob, train)) if self.job_set_of(train).is_none() => {
                Err(format!("{} has pods, and its JobSet is not observed yet", record.source))
            }
            _ => Ok(()),
        }
    }

    /// Whether a gang is submitted, and keeps its seats, although some of its members do not exist.
    pub(crate) fn may_have_missing_members(&self, record: &GangRecord) -> bool {
        match &record.source {
            GangSource::Owner { .. } => self.may_have_later_stages(record),
            GangSource::Group(_) if record.pods.is_empty() => {
                self.creates_pods_after_admission(record)
            }
            GangSource::Group(_) => self.may_have_later_stages(record),
            GangSource::Merged(_)
            | GangSource::Gang { .. }
            | GangSource::Pod { .. }
            | GangSource::Request { .. } => false,
        }
    }

    /// Whether a member exists, or did a moment ago, after which others may be created.
    fn may_have_later_stages(&self, record: &GangRecord) -> bool {
        self.comes_in_stages(record) && (self.has_living(record) || self.is_between_stages(record))
    }

    fn has_living(&self, record: &GangRecord) -> bool {
        let mut pods = record.pods.iter().filter_map(|key| self.cache.pods.get(key));
        pods.any(|pod| !pod.is_finished())
    }

    /// Whether some of a gang's members are created after others run.
    pub(crate) fn comes_in_stages(&self, record: &GangRecord) -> bool {
        self.is_made_in_stages(record) || self.is_sized_by_resources(record)
    }

    /// Whether a gang's workload creates some of its members after others, and is not over.
    fn is_made_in_stages(&self, record: &GangRecord) -> bool {
        self.workload_of(record).is_some_and(|(kind, object)| {
            workloads::comes_in_stages(kind, &object.data) && !workloads::is_over(&object.data)
        })
    }

    /// Whether a gang is sized by the total resources that its group declares; its first member creates the others.
    fn is_sized_by_resources(&self, record: &GangRecord) -> bool {
        let GangSource::Group(_) = record.source else { return false };
        let object = self.source_object(&record.source);
        object.is_some_and(|(_, object)| dialects::is_sized_by_resources(&object.data))
    }

    /// Notes whether a gang that has seats is between two stages: no pod of it is left, and its workload creates others. A
    /// gang that is sized by total resources is over with the member that created the others.
    pub(crate) fn update_stage(&mut self, name: &Arc<str>) {
        let Some(record) = self.gangs.get(name) else { return };
        let has_living = self.has_living(record);
        if record.pods.is_empty() || has_living {
            self.gangs.get_mut(name).expect("the gang has a record").between_stages_since = None;
            return;
        }
        let gang = self.world.gang_named(name).and_then(|id| self.world.gang(id));
        let has_seats = gang.is_some_and(|gang| {
            matches!(gang.phase, Phase::Admitted { .. } | Phase::Running { .. })
        });
        let begins = record.between_stages_since.is_none() && self.is_made_in_stages(record);
        if begins && (has_seats || self.has_placement(name)) {
            self.gangs.get_mut(name).expect("the gang has a record").between_stages_since =
                Some(Instant::now());
            self.requeue_after_member_timeout(name);
        }
    }

    fn is_between_stages(&self, record: &GangRecord) -> bool {
        record.between_stages_since.is_some_and(|since| since.elapsed() < MEMBER_TIMEOUT)
    }

    /// Whether a gang has no members before its group is admitted.
    pub(crate) fn creates_pods_after_admission(&self, record: &GangRecord) -> bool {
        let GangSource::Group(of) = &record.source else { return false };
        if of.dialect != Dialect::Volcano || !self.config.serves_name(VOLCANO) {
            return false;
        }
        let Some((_, object)) = self.source_object(&record.source) else { return false };
        let phase = object.data.pointer("/status/phase").and_then(Value::as_str);
        matches!(phase, None | Some("" | "Pending" | "Inqueue"))
    }

    /// Registers a group that may have no pods yet.
    pub(crate) fn observe_group_without_pods(&mut self, moved: &ObjectChange<DynamicObject>) {
        if moved.is.is_none() || !self.config.serves_name(VOLCANO) {
            return;
        }
        let (namespace, name) = crate::cache::store::split_key(&moved.key);
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        let of = GroupRef { dialect: Dialect::Volcano, namespace, name };
        let name = GangSource::Group(of.clone()).gang_name();
        if self.gangs.ensure(GangSource::Group(of)).pods.is_empty() {
            self.dirty.gangs.insert(name);
        }
    }

    /// Whether seats are kept for members that are yet to be created.
    pub(crate) fn awaits_members(&self, record: &GangRecord) -> bool {
        record.members_requested_at.is_some_and(|since| since.elapsed() < MEMBER_TIMEOUT)
            || (self.is_between_stages(record) && record.missing_members > 0)
    }

    /// Keeps the seats of an admitted gang without pods, and has its owner create them.
    pub(crate) fn ask_owner_for_members(&mut self, name: &Arc<str>) {
        let Some(record) = self.gangs.get(name) else { return };
        if !record.pods.is_empty() || !self.creates_pods_after_admission(record) {
            return;
        }
        self.reserve_for_members(name);
        self.request_members(name);
    }

    /// Keeps seats for members that are to be created, until a timeout.
    pub(crate) fn reserve_for_members(&mut self, name: &Arc<str>) {
        let Some(record) = self.gangs.get_mut(name) else { return };
        record.members_requested_at = Some(Instant::now());
        self.requeue_after_member_timeout(name);
    }

    fn requeue_after_member_timeout(&self, name: &Arc<str>) {
        let (outcomes, name) = (self.outcomes.clone(), name.clone());
        tokio::spawn(async move {
            tokio::time::sleep(MEMBER_TIMEOUT).await;
            let _ = outcomes.send(Outcome::Requeue(name));
        });
    }

    /// Marks a group as admitted, so that its operator creates the members.
    pub(crate) fn request_members(&mut self, name: &Arc<str>) {
        let admitted = self.group_patches(name, |_| Some(State::Admitted));
        let Some((objects, object, patch)) = admitted.into_iter().next() else { return };
        let (writer, gang) =
            (self.writer.for_namespace(crate::cache::store::split_key(name).0), name.clone());
        self.ordered_writes.write(name, async move {
            if let Err(error) = writer.patch(&objects, &object, &patch.patch).await {
                tracing::warn!(gang = &*gang, %error, "its group was not marked as admitted");
            }
        });
    }
}

/// Whether groups of a dialect are created by operators, one per workload, which is their owner.
pub(crate) fn is_of_operators(group: &GroupRef) -> bool {
    matches!(group.dialect, Dialect::Volcano | Dialect::SchedulerPlugins | Dialect::KubeBatch)
}
