//! Gangs of one name, one after the other: a workload that was deleted and made again.
//!
//! Its new pods are there while the old ones still end, and are called alike. They are another gang: they have none of its
//! seats, and begin when nobody of it is left. Who made a pod is told by the UID of its owner, where it has one that
//! stands for the gang.

use std::sync::Arc;

use kube::runtime::events::EventType;

use crate::cache::kinds::GangSource;
use crate::cache::store::Key;
use crate::gang::registry::GangRecord;
use crate::host::Host;
use crate::objects::pod::Pod;

impl Host {
    /// A pod is part of the gang it says, or waits until those are gone who are called alike.
    pub(crate) fn join(&mut self, key: &Key, pod: &Pod) -> Arc<str> {
        let (origin, maker) = self.origin_and_maker(pod);
        let name = origin.gang_name();
        let group = self.gangs.get(&name);
        let is_anothers =
            |group: &GangRecord| !group.pods.contains(key) && group.is_anothers(&maker);
        if pod.is_over() && group.is_some_and(is_anothers) {
            // What is left of one that is no more.
            self.dirty.gangs.extend(self.gangs.leave(key));
            return name;
        }
        let waited = group.is_some_and(|group| !group.successors.is_empty());
        if let GangSource::Group(of) = &origin {
            // Who is to start together with it may learn now that it does not say so.
            self.dirty.gangs.extend(self.gangs.joined_with(of).cloned());
        }
        let before = self.gangs.join(key, origin, maker);
        self.dirty.gangs.extend(before);
        let waits = self.gangs.get(&name).is_some_and(|group| !group.successors.is_empty());
        if waits && !waited {
            let words = "pods of one that was deleted have not ended: it begins when they have";
            self.record_event(&name, EventType::Normal, ("WaitingForOlder", "Wait"), words);
        }
        name
    }

    /// Whether a gang is only what is left of one that was deleted: there is another of its name.
    pub(crate) fn is_superseded(&self, group: &GangRecord) -> bool {
        if !group.successors.is_empty() {
            return true;
        }
        let Some(maker) = &group.maker else { return false };
        let object = self.object_of(&group.origin);
        let uid = object.and_then(|(_, object)| object.metadata.uid.as_deref());
        uid.is_some_and(|uid| **maker != *uid)
    }

    /// Sees a gang to its end that there is another of, and lets that begin when nobody of it is left.
    pub(crate) fn start_successor(&mut self, name: &Arc<str>) {
        let group = self.gangs.get(name).expect("just seen");
        let is_live = |key: &Key| self.cache.pods.get(key).is_some_and(|pod| !pod.is_over());
        if group.pods.iter().any(is_live) {
            return self.follow(name);
        }
        let (origin, successors) = (group.origin.clone(), group.successors.clone());
        self.remove_gang(name);
        if self.gangs.get(name).is_some() {
            return; // its order is rolled back first
        }
        if !matches!(origin, GangSource::Gang { .. }) {
            // The server would remove it later, and with it what is written of the next.
            self.remove_object(name);
        }
        for key in successors {
            if let Some(pod) = self.cache.pods.get(&key).cloned() {
                let name = self.join(&key, &pod);
                self.dirty.gangs.insert(name);
            }
        }
        if self.job_of(&origin).is_some() || self.made_of(&origin).is_some() {
            self.gangs.ensure(origin);
            self.dirty.gangs.insert(name.clone());
        }
    }
}
