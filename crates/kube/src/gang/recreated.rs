//! Gangs of one name, one after the other: a workload that was deleted and made again.
//!
//! Its new pods are there while the old ones still end, and are called alike. They are another gang: they have none of its
//! seats, and begin when nobody of it is left. Who made a pod is told by the UID of its owner, where it has one that
//! stands for the gang.

use std::sync::Arc;

use kube::runtime::events::EventType;

use crate::cache::store::Key;
use crate::gang::identity::GangSource;
use crate::gang::record::GangRecord;
use crate::host::Host;
use crate::objects::pod::Pod;

impl Host {
    /// A pod is part of the gang it says, or waits until those are gone who are called alike.
    pub(crate) fn add_to_gang(&mut self, key: &Key, pod: &Pod) -> Arc<str> {
        let (source, owner_uid) = self.source_and_owner_uid(pod);
        let name = source.gang_name();
        let record = self.gangs.get(&name);
        let is_anothers =
            |record: &GangRecord| !record.pods.contains(key) && record.has_other_owner(&owner_uid);
        if pod.is_over() && record.is_some_and(is_anothers) {
            // What is left of one that is no more.
            self.dirty.gangs.extend(self.gangs.remove_pod(key));
            return name;
        }
        let waited = record.is_some_and(|record| !record.successors.is_empty());
        if let GangSource::Group(of) = &source {
            // Who is to start together with it may learn now that it does not say so.
            self.dirty.gangs.extend(self.gangs.merged_gangs_with(of).cloned());
        }
        let before = self.gangs.add_pod(key, source, owner_uid);
        self.dirty.gangs.extend(before);
        let waits = self.gangs.get(&name).is_some_and(|record| !record.successors.is_empty());
        if waits && !waited {
            let words = "pods of one that was deleted have not ended: it begins when they have";
            self.record_event(&name, EventType::Normal, ("WaitingForTermination", "Wait"), words);
        }
        name
    }

    /// Whether a gang is only what is left of one that was deleted: there is another of its name.
    pub(crate) fn is_superseded(&self, record: &GangRecord) -> bool {
        if !record.successors.is_empty() {
            return true;
        }
        let Some(owner_uid) = &record.owner_uid else { return false };
        let object = self.source_object(&record.source);
        let uid = object.and_then(|(_, object)| object.metadata.uid.as_deref());
        uid.is_some_and(|uid| **owner_uid != *uid)
    }

    /// Sees a gang to its end that there is another of, and lets that begin when nobody of it is left.
    pub(crate) fn start_successor(&mut self, name: &Arc<str>) {
        let record = self.gangs.get(name).expect("just seen");
        let is_live = |key: &Key| self.cache.pods.get(key).is_some_and(|pod| !pod.is_over());
        if record.pods.iter().any(is_live) {
            return self.reconcile_phase(name);
        }
        let (source, successors) = (record.source.clone(), record.successors.clone());
        self.remove_gang(name);
        if self.gangs.get(name).is_some() {
            return; // its order is rolled back first
        }
        if !matches!(source, GangSource::Gang { .. }) {
            // The server would remove it later, and with it what is written of the next.
            self.remove_object(name);
        }
        for key in successors {
            if let Some(pod) = self.cache.pods.get(&key).cloned() {
                let name = self.add_to_gang(&key, &pod);
                self.dirty.gangs.insert(name);
            }
        }
        if self.managed_job(&source).is_some() || self.template_gang_of(&source).is_some() {
            self.gangs.ensure(source);
            self.dirty.gangs.insert(name.clone());
        }
    }
}
