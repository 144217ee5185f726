//! No pod of a deleted gang is bound, and a new gang of the same name starts only after the last pod of the old one is
//! gone.

use std::collections::BTreeMap;
use std::time::Instant;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::DynamicObject;

use super::super::pod_fields::controller_of;
use super::super::snapshot::Snapshot;
use super::super::suspected::{LATE, Moment};

#[derive(Default)]
pub(crate) struct DeletedGangs {
    /// When Gangs were deleted, by their UIDs.
    deleted: BTreeMap<String, Instant>,
}

impl DeletedGangs {
    pub(crate) fn deleted(&mut self, gang: &DynamicObject, now: Moment) {
        self.deleted.extend(gang.uid().map(|uid| (uid, now.tick)));
    }

    /// A pod has just been bound.
    pub(crate) fn bound(&self, snapshot: &Snapshot, key: &str, now: Moment) -> Option<String> {
        let pod = snapshot.pods.get(key).filter(|pod| snapshot.is_scheduled_by_muster(key, pod))?;
        let (owner, uid) = owner_and_uid(pod)?;
        if let Some(since) = self.deleted.get(uid).filter(|since| now.tick - **since > LATE) {
            let long = now.tick - *since;
            return Some(format!("{key} was bound {long:?} after its Gang was deleted"));
        }
        let is_older = |(_, other): &(&String, &Pod)| {
            let other = owner_and_uid(other);
            other.is_some_and(|(name, other)| name == owner && other != uid)
        };
        let (older, _) = snapshot.running_pods().find(is_older)?;
        Some(format!("{key} was bound while {older} was there, of an older one of that name"))
    }
}

/// The owner of a pod where it is a gang: its namespace, kind and name, and its UID.
fn owner_and_uid(pod: &Pod) -> Option<((String, &str, &str), &str)> {
    let owner = controller_of(pod).filter(|owner| ["Job", "Gang"].contains(&&*owner.kind))?;
    Some(((pod.namespace().unwrap_or_default(), &owner.kind, &owner.name), &owner.uid))
}
