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

use crate::cache::kinds::{GangSource, KindRole};
use crate::cache::store::Moved;
use crate::gang::build::marks;
use crate::gang::registry::GangRecord;
use crate::gang::source::controller;
use crate::host::{Host, Told};

/// The scheduler whose place Muster takes where it lets in groups that have no pods. Nothing on such a group says who is
/// meant.
const VOLCANO: &str = "volcano";
/// How long seats are kept for members that are to be made.
const WITHIN: Duration = Duration::from_secs(300);

impl Host {
    /// The workload with a gang's templates: the one its pods were made by, or its group was.
    pub(crate) fn workload_of(
        &self,
        group: &GangRecord,
    ) -> Option<(WorkloadKind, &Arc<DynamicObject>)> {
        match &group.origin {
            GangSource::Owner { namespace, templates: (kind, name), .. } => {
                Some((*kind, self.object(KindRole::Workload(*kind), namespace, name)?))
            }
            GangSource::Group(of) if is_of_operators(of) => {
                let (kind, object) = self.operated(group)?;
                // A TrainJob keeps no templates, but the JobSet it makes, of its own name, does.
                let set = (kind == WorkloadKind::TrainJob).then(|| self.set_of(object)).flatten();
                Some(set.map_or((kind, object), |set| (WorkloadKind::JobSet, set)))
            }
            _ => None,
        }
    }

    /// The workload whose operator made a group. A LeaderWorkerSet's group is owned by the leader's pod, and only labels
    /// say whose that is.
    fn operated(&self, group: &GangRecord) -> Option<(WorkloadKind, &Arc<DynamicObject>)> {
        let (_, object) = self.object_of(&group.origin)?;
        let namespace = object.metadata.namespace.as_deref()?;
        let mut owner = controller(object.metadata.owner_references.as_deref()?)?;
        if workloads::kind_of(&owner.api_version, &owner.kind) == Some(WorkloadKind::Pod) {
            let leader = self.cache.pods.get(&format!("{namespace}/{}", owner.name))?;
            owner = workloads::named_owner(marks(leader).0)?;
        }
        let kind = workloads::kind_of(&owner.api_version, &owner.kind)?;
        Some((kind, self.object(KindRole::Workload(kind), namespace, &owner.name)?))
    }

    fn set_of(&self, train: &DynamicObject) -> Option<&Arc<DynamicObject>> {
        let (namespace, name) =
            (train.metadata.namespace.as_deref()?, train.metadata.name.as_deref()?);
        self.object(KindRole::Workload(WorkloadKind::JobSet), namespace, name)
    }

    /// Whether everything was seen that says what the members to come of a group are like. Pods of a TrainJob are made by
    /// its JobSet, which therefore is there; pods and workloads are watched apart.
    pub(crate) fn stages_are_seen(&self, group: &GangRecord) -> Result<(), String> {
        let GangSource::Group(of) = &group.origin else { return Ok(()) };
        if !is_of_operators(of) || group.pods.is_empty() {
            return Ok(());
        }
        match self.operated(group) {
            Some((WorkloadKind::TrainJob, train)) if self.set_of(train).is_none() => {
                Err(format!("{} has pods, and its JobSet is not seen yet", group.origin))
            }
            _ => Ok(()),
        }
    }

    /// Whether a gang is taken in, and keeps its seats, although some of its members do not exist.
    pub(crate) fn may_be_absent(&self, group: &GangRecord) -> bool {
        match &group.origin {
            GangSource::Owner { .. } => self.has_stages_to_come(group),
            GangSource::Group(_) if group.pods.is_empty() => self.comes_when_let_in(group),
            GangSource::Group(_) => self.has_stages_to_come(group),
            GangSource::Joined(_)
            | GangSource::Gang { .. }
            | GangSource::Pod { .. }
            | GangSource::Request { .. } => false,
        }
    }

    /// Whether somebody is there, or was a moment ago, after whom others may be made.
    fn has_stages_to_come(&self, group: &GangRecord) -> bool {
        self.comes_in_stages(group) && (self.has_living(group) || self.is_between(group))
    }

    fn has_living(&self, group: &GangRecord) -> bool {
        let mut pods = group.pods.iter().filter_map(|key| self.cache.pods.get(key));
        pods.any(|pod| !pod.is_over())
    }

    /// Whether some of a gang's members are made after others run.
    pub(crate) fn comes_in_stages(&self, group: &GangRecord) -> bool {
        self.is_made_in_stages(group) || self.is_sized_by_resources(group)
    }

    /// Whether a gang's workload makes some of its members after others, and is not over.
    fn is_made_in_stages(&self, group: &GangRecord) -> bool {
        self.workload_of(group).is_some_and(|(kind, object)| {
            workloads::comes_in_stages(kind, &object.data) && !workloads::is_over(&object.data)
        })
    }

    /// Whether a gang is what its group says all members take together, of whom the first one makes the others.
    fn is_sized_by_resources(&self, group: &GangRecord) -> bool {
        let GangSource::Group(_) = group.origin else { return false };
        let object = self.object_of(&group.origin);
        object.is_some_and(|(_, object)| dialects::is_sized_by_resources(&object.data))
    }

    /// Notes whether a gang that has seats is between two stages: nobody of it is left, and its workload makes others. Of
    /// one that is sized by what all take, the one that made the others is over, and so is the gang.
    pub(crate) fn watch_stages(&mut self, name: &Arc<str>) {
        let Some(group) = self.gangs.get(name) else { return };
        let has_living = self.has_living(group);
        if group.pods.is_empty() || has_living {
            self.gangs.get_mut(name).expect("just seen").between = None;
            return;
        }
        let gang = self.world.gang_named(name).and_then(|id| self.world.gang(id));
        let has_seats = gang.is_some_and(|gang| {
            matches!(gang.phase, Phase::Admitted { .. } | Phase::Running { .. })
        });
        let begins = group.between.is_none() && self.is_made_in_stages(group);
        if begins && (has_seats || self.has_placement(name)) {
            self.gangs.get_mut(name).expect("just seen").between = Some(Instant::now());
            self.look_when_late(name);
        }
    }

    fn is_between(&self, group: &GangRecord) -> bool {
        group.between.is_some_and(|since| since.elapsed() < WITHIN)
    }

    /// Whether a gang has no members before its group is let in.
    pub(crate) fn comes_when_let_in(&self, group: &GangRecord) -> bool {
        let GangSource::Group(of) = &group.origin else { return false };
        if of.dialect != Dialect::Volcano || !self.config.serves_name(VOLCANO) {
            return false;
        }
        let Some((_, object)) = self.object_of(&group.origin) else { return false };
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
    pub(crate) fn awaits_members(&self, group: &GangRecord) -> bool {
        group.called.is_some_and(|since| since.elapsed() < WITHIN)
            || (self.is_between(group) && group.absent > 0)
    }

    /// Has the owner of an admitted gang make its members.
    pub(crate) fn ask_owner_for_members(&mut self, name: &Arc<str>) {
        let Some(group) = self.gangs.get(name) else { return };
        if !group.pods.is_empty() || !self.comes_when_let_in(group) {
            return;
        }
        self.keep_for_members(name);
        self.admit_staged(name);
    }

    /// Seats are kept for a while for members that are to be made.
    pub(crate) fn keep_for_members(&mut self, name: &Arc<str>) {
        let Some(group) = self.gangs.get_mut(name) else { return };
        group.called = Some(Instant::now());
        self.look_when_late(name);
    }

    fn look_when_late(&self, name: &Arc<str>) {
        let (told, name) = (self.outcomes.clone(), name.clone());
        tokio::spawn(async move {
            tokio::time::sleep(WITHIN).await;
            let _ = told.send(Told::Called(name));
        });
    }

    /// A gang that takes nothing before its members exist has them made at once.
    pub(crate) fn admit_staged(&mut self, name: &Arc<str>) {
        let admitted = self.group_patches(name, |_| Some(State::Admitted));
        let Some((objects, object, patch)) = admitted.into_iter().next() else { return };
        let (hands, gang) =
            (self.writer.within(crate::provision::order_object::parts(name).0), name.clone());
        self.ordered_writes.write(name, async move {
            if let Err(said) = hands.patch(&objects, &object, &patch.patch).await {
                tracing::warn!(gang = &*gang, %said, "its members were not asked for");
            }
        });
    }
}

/// Whether groups of a dialect are made by operators, one for a workload, which is their owner.
pub(crate) fn is_of_operators(group: &GroupRef) -> bool {
    matches!(group.dialect, Dialect::Volcano | Dialect::SchedulerPlugins | Dialect::KubeBatch)
}
