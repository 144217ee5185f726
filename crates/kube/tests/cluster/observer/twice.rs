//! A gang that was deleted is over: nobody more of it is started, and who is made under its name begins when the last of the
//! old one is gone.

use std::collections::BTreeMap;
use std::time::Instant;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::DynamicObject;

use super::doubts::{LATE, Moment};
use super::pods::maker;
use super::seen::Seen;

#[derive(Default)]
pub(super) struct Twice {
    /// When Gangs were deleted, by their UIDs.
    deleted: BTreeMap<String, Instant>,
}

impl Twice {
    pub(super) fn deleted(&mut self, gang: &DynamicObject, now: Moment) {
        self.deleted.extend(gang.uid().map(|uid| (uid, now.tick)));
    }

    /// Somebody has just been put on a node.
    pub(super) fn bound(&self, seen: &Seen, key: &str, now: Moment) -> Option<String> {
        let pod = seen.pods.get(key).filter(|pod| seen.is_musters(key, pod))?;
        let (whose, uid) = whose(pod)?;
        if let Some(since) = self.deleted.get(uid).filter(|since| now.tick - **since > LATE) {
            let long = now.tick - *since;
            return Some(format!("{key} was bound {long:?} after its Gang was deleted"));
        }
        let is_older = |(_, other): &(&String, &Pod)| {
            let other = self::whose(other);
            other.is_some_and(|(name, other)| name == whose && other != uid)
        };
        let (older, _) = seen.at_work().find(is_older)?;
        Some(format!("{key} was bound while {older} was there, of an older one of that name"))
    }
}

/// What made a pod, where that stands for a gang: its namespace, kind and name, and which one of that name it is.
fn whose(pod: &Pod) -> Option<((String, &str, &str), &str)> {
    let owner = maker(pod).filter(|owner| ["Job", "Gang"].contains(&&*owner.kind))?;
    Some(((pod.namespace().unwrap_or_default(), &owner.kind, &owner.name), &owner.uid))
}
