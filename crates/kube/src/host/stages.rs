//! Members that are made one after another, and members that nobody makes before there is room for all.
//!
//! An operator may start its workers only when the leader runs, or make no pod at all before its group is let in. Whoever
//! waits until all members exist would wait forever. Such a gang is sized by its owner's templates, or by what its group
//! says all of it takes; it gets all of its seats at once, and keeps them for those to come.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::api::DynamicObject;
use muster_api::dialects::{Dialect, GroupRef, State};
use muster_api::workloads::{self, WorkloadKind};
use muster_core::Event;
use muster_core::gang::GangSpec;
use muster_core::id::GangId;
use muster_core::plan::{Action, StopReason};
use serde_json::Value;

use super::groups::Group;
use super::owners::controller;
use super::{Host, Told};
use crate::intake::{Interest, Origin};
use crate::shelf::Moved;

/// The scheduler whose place Muster takes where it lets in groups that have no pods. Nothing on such a group says who is
/// meant.
const VOLCANO: &str = "volcano";
/// How long seats are kept for members that are to be made.
const WITHIN: Duration = Duration::from_secs(300);

impl Host {
    /// The workload with a gang's templates: the one its pods were made by, or its group was.
    pub(super) fn workload_of(&self, group: &Group) -> Option<(WorkloadKind, &Arc<DynamicObject>)> {
        match &group.origin {
            Origin::Owner { namespace, templates: (kind, name), .. } => {
                Some((*kind, self.object(Interest::Workload(*kind), namespace, name)?))
            }
            Origin::Group(of) if of.dialect == Dialect::Volcano => {
                let (_, object) = self.object_of(&group.origin)?;
                let owner = controller(object.metadata.owner_references.as_deref()?)?;
                let kind = workloads::kind_of(&owner.api_version, &owner.kind)?;
                Some((kind, self.object(Interest::Workload(kind), &of.namespace, &owner.name)?))
            }
            _ => None,
        }
    }

    /// Whether a gang is taken in before all of its members exist.
    pub(super) fn may_be_absent(&self, group: &Group) -> bool {
        match &group.origin {
            Origin::Owner { .. } => self.comes_in_stages(group),
            Origin::Group(_) => group.pods.is_empty() && self.comes_when_let_in(group),
            Origin::Gang { .. } | Origin::Pod { .. } | Origin::Request { .. } => false,
        }
    }

    /// Whether some of a gang's members are made after others run.
    pub(super) fn comes_in_stages(&self, group: &Group) -> bool {
        matches!(group.origin, Origin::Owner { .. })
            && self
                .workload_of(group)
                .is_some_and(|(kind, object)| workloads::comes_in_stages(kind, &object.data))
    }

    /// Whether a gang has no members before its group is let in.
    pub(super) fn comes_when_let_in(&self, group: &Group) -> bool {
        let Origin::Group(of) = &group.origin else { return false };
        if of.dialect != Dialect::Volcano || !self.config.serves_name(VOLCANO) {
            return false;
        }
        let Some((_, object)) = self.object_of(&group.origin) else { return false };
        let phase = object.data.pointer("/status/phase").and_then(Value::as_str);
        matches!(phase, None | Some("" | "Pending" | "Inqueue"))
    }

    /// A group that may have no pods yet is known from now on.
    pub(super) fn see_group_without_pods(&mut self, moved: &Moved<DynamicObject>) {
        if moved.is.is_none() || !self.config.serves_name(VOLCANO) {
            return;
        }
        let (namespace, name) = super::orders::parts(&moved.key);
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        let of = GroupRef { dialect: Dialect::Volcano, namespace, name };
        let name = Origin::Group(of.clone()).gang_name();
        if self.groups.ensure(Origin::Group(of)).pods.is_empty() {
            self.dirty.gangs.insert(name);
        }
    }

    /// Whether seats are kept for members that are yet to be made.
    pub(super) fn awaits_members(&self, group: &Group) -> bool {
        group.called.is_some_and(|since| since.elapsed() < WITHIN)
    }

    /// Has the owner of an admitted gang make its members.
    pub(super) fn call_members(&mut self, name: &Arc<str>) {
        let Some(group) = self.groups.get(name) else { return };
        if !group.pods.is_empty() || !self.comes_when_let_in(group) {
            return;
        }
        self.keep_for_members(name);
        self.let_in(name);
    }

    /// Seats are kept for a while for members that are to be made.
    pub(super) fn keep_for_members(&mut self, name: &Arc<str>) {
        let Some(group) = self.groups.get_mut(name) else { return };
        group.called = Some(Instant::now());
        let (told, name) = (self.told.clone(), name.clone());
        tokio::spawn(async move {
            tokio::time::sleep(WITHIN).await;
            let _ = told.send(Told::Called(name));
        });
    }

    /// A gang that takes nothing before its members exist has them made at once.
    pub(super) fn let_in(&mut self, name: &Arc<str>) {
        let Some((objects, object, patch)) = self.group_patch(name, &State::Admitted) else {
            return;
        };
        let (hands, gang) = (self.hands.clone(), name.clone());
        self.lanes.write(name, async move {
            if let Err(said) = hands.patch(&objects, &object, &patch.patch).await {
                tracing::warn!(gang = &*gang, %said, "its members were not asked for");
            }
        });
    }

    /// Members that turned out to be other than their group said: seats for what was said are worth nothing to them, and
    /// the gang is planned anew with what it is, in its old place.
    pub(super) fn is_other_than_said(&mut self, name: &Arc<str>, id: GangId, spec: GangSpec) {
        tracing::info!(gang = &**name, "its members are other than its group said");
        let stop = Action::Stop { gang: id, reason: StopReason::Moved };
        for event in
            [Event::Decided(stop), Event::GangStopped(id), Event::GangChanged(spec.clone())]
        {
            if !self.happened(&event) {
                return;
            }
        }
        let group = self.groups.get_mut(name).expect("just seen");
        (group.recorded, group.called, group.spec) = (false, None, Some(spec));
        self.write_off(name);
    }
}
