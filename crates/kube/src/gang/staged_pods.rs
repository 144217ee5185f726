//! Members that are made one after another, and members that nobody makes before there is room for all.
//!
//! An operator may start its workers only when the leader runs, or make no pod at all before its group is let in. Whoever
//! waits until all members exist would wait forever. Such a gang is sized by its owner's templates, or by what its group
//! says all of it takes; it gets all of its seats at once, and keeps them for those to come.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::api::DynamicObject;
use muster_api::dialects::{self, Dialect, GroupRef, State};
use muster_api::workloads::{self, WorkloadKind};
use muster_core::gang::Phase;
use serde_json::Value;

use crate::cache::kinds::KindRole;
use crate::cache::store::Moved;
use crate::effects::outcome::Outcome;
use crate::gang::build::labels_and_annotations;
use crate::gang::identity::GangSource;
use crate::gang::record::GangRecord;
use crate::gang::source::controller_of;
use crate::host::Host;

/// The scheduler whose place Muster takes where it lets in groups that have no pods. Nothing on such a group says who is
/// meant.
const VOLCANO: &str = "volcano";
/// How long seats are kept for members that are to be made.
const WITHIN: Duration = Duration::from_secs(300);

impl Host {
    /// The workload with a gang's templates: the one its pods were made by, or its group was.
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
                // A TrainJob keeps no templates, but the JobSet it makes, of its own name, does.
                let set =
                    (kind == WorkloadKind::TrainJob).then(|| self.job_set_of(object)).flatten();
                Some(set.map_or((kind, object), |set| (WorkloadKind::JobSet, set)))
            }
            _ => None,
        }
    }

    /// The workload whose operator made a group. A LeaderWorkerSet's group is owned by the leader's pod, and only labels
    /// say whose that is.
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

    /// Whether everything was seen that says what the members to come of a group are like. Pods of a TrainJob are made by
    /// its JobSet, which therefore is there; pods and workloads are watched apart.
    pub(crate) fn check_stages_observed(&self, record: &GangRecord) -> Result<(), String> {
        let GangSource::Group(of) = &record.source else { return Ok(()) };
        if !is_of_operators(of) || record.pods.is_empty() {
            return Ok(());
        }
        match self.operator_workload(record) {
            Some((WorkloadKind::TrainJob, train)) if self.job_set_of(train).is_none() => {
                Err(format!("{} has pods, and its JobSet is not seen yet", record.source))
            }
            _ => Ok(()),
        }
    }

    /// Whether a gang is taken in, and keeps its seats, although some of its members do not exist.
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

    /// Whether somebody is there, or was a moment ago, after whom others may be made.
    fn may_have_later_stages(&self, record: &GangRecord) -> bool {
        self.comes_in_stages(record) && (self.has_living(record) || self.is_between_stages(record))
    }

    fn has_living(&self, record: &GangRecord) -> bool {
        let mut pods = record.pods.iter().filter_map(|key| self.cache.pods.get(key));
        pods.any(|pod| !pod.is_over())
    }

    /// Whether some of a gang's members are made after others run.
    pub(crate) fn comes_in_stages(&self, record: &GangRecord) -> bool {
        self.is_made_in_stages(record) || self.is_sized_by_resources(record)
    }

    /// Whether a gang's workload makes some of its members after others, and is not over.
    fn is_made_in_stages(&self, record: &GangRecord) -> bool {
        self.workload_of(record).is_some_and(|(kind, object)| {
            workloads::comes_in_stages(kind, &object.data) && !workloads::is_over(&object.data)
        })
    }

    /// Whether a gang is what its group says all members take together, of whom the first one makes the others.
    fn is_sized_by_resources(&self, record: &GangRecord) -> bool {
        let GangSource::Group(_) = record.source else { return false };
        let object = self.source_object(&record.source);
        object.is_some_and(|(_, object)| dialects::is_sized_by_resources(&object.data))
    }

    /// Notes whether a gang that has seats is between two stages: nobody of it is left, and its workload makes others. Of
    /// one that is sized by what all take, the one that made the others is over, and so is the gang.
    pub(crate) fn update_stage(&mut self, name: &Arc<str>) {
        let Some(record) = self.gangs.get(name) else { return };
        let has_living = self.has_living(record);
        if record.pods.is_empty() || has_living {
            self.gangs.get_mut(name).expect("just seen").between_stages_since = None;
            return;
        }
        let gang = self.world.gang_named(name).and_then(|id| self.world.gang(id));
        let has_seats = gang.is_some_and(|gang| {
            matches!(gang.phase, Phase::Admitted { .. } | Phase::Running { .. })
        });
        let begins = record.between_stages_since.is_none() && self.is_made_in_stages(record);
        if begins && (has_seats || self.has_placement(name)) {
            self.gangs.get_mut(name).expect("just seen").between_stages_since =
                Some(Instant::now());
            self.requeue_after_member_timeout(name);
        }
    }

    fn is_between_stages(&self, record: &GangRecord) -> bool {
        record.between_stages_since.is_some_and(|since| since.elapsed() < WITHIN)
    }

    /// Whether a gang has no members before its group is let in.
    pub(crate) fn creates_pods_after_admission(&self, record: &GangRecord) -> bool {
        let GangSource::Group(of) = &record.source else { return false };
        if of.dialect != Dialect::Volcano || !self.config.serves_name(VOLCANO) {
            return false;
        }
        let Some((_, object)) = self.source_object(&record.source) else { return false };
        let phase = object.data.pointer("/status/phase").and_then(Value::as_str);
        matches!(phase, None | Some("" | "Pending" | "Inqueue"))
    }

    /// A group that may have no pods yet is known from now on.
    pub(crate) fn observe_group_without_pods(&mut self, moved: &Moved<DynamicObject>) {
        if moved.is.is_none() || !self.config.serves_name(VOLCANO) {
            return;
        }
        let (namespace, name) = crate::provision::order_object::parts(&moved.key);
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        let of = GroupRef { dialect: Dialect::Volcano, namespace, name };
        let name = GangSource::Group(of.clone()).gang_name();
        if self.gangs.ensure(GangSource::Group(of)).pods.is_empty() {
            self.dirty.gangs.insert(name);
        }
    }

    /// Whether seats are kept for members that are yet to be made.
    pub(crate) fn awaits_members(&self, record: &GangRecord) -> bool {
        record.members_requested_at.is_some_and(|since| since.elapsed() < WITHIN)
            || (self.is_between_stages(record) && record.missing_members > 0)
    }

    /// Has the owner of an admitted gang make its members.
    pub(crate) fn ask_owner_for_members(&mut self, name: &Arc<str>) {
        let Some(record) = self.gangs.get(name) else { return };
        if !record.pods.is_empty() || !self.creates_pods_after_admission(record) {
            return;
        }
        self.reserve_for_members(name);
        self.request_members(name);
    }

    /// Seats are kept for a while for members that are to be made.
    pub(crate) fn reserve_for_members(&mut self, name: &Arc<str>) {
        let Some(record) = self.gangs.get_mut(name) else { return };
        record.members_requested_at = Some(Instant::now());
        self.requeue_after_member_timeout(name);
    }

    fn requeue_after_member_timeout(&self, name: &Arc<str>) {
        let (outcomes, name) = (self.outcomes.clone(), name.clone());
        tokio::spawn(async move {
            tokio::time::sleep(WITHIN).await;
            let _ = outcomes.send(Outcome::Requeue(name));
        });
    }

    /// A gang that takes nothing before its members exist has them made at once.
    pub(crate) fn request_members(&mut self, name: &Arc<str>) {
        let admitted = self.group_patches(name, |_| Some(State::Admitted));
        let Some((objects, object, patch)) = admitted.into_iter().next() else { return };
        let (writer, gang) =
            (self.writer.within(crate::provision::order_object::parts(name).0), name.clone());
        self.ordered_writes.write(name, async move {
            if let Err(said) = writer.patch(&objects, &object, &patch.patch).await {
                tracing::warn!(gang = &*gang, %said, "its members were not asked for");
            }
        });
    }
}

/// Whether groups of a dialect are made by operators, one for a workload, which is their owner.
pub(crate) fn is_of_operators(group: &GroupRef) -> bool {
    matches!(group.dialect, Dialect::Volcano | Dialect::SchedulerPlugins | Dialect::KubeBatch)
}
