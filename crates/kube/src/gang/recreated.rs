//! Successive gangs of one name: a workload that was deleted and recreated.
//!
//! The new pods exist while the old ones still terminate, under the same gang name. They are another gang: they have none of
//! its seats, and start when no old pod is left. The UID of the owner, where one stands for the gang, tells them apart.

use std::sync::Arc;

use kube::runtime::events::EventType;

use crate::cache::store::Key;
use crate::gang::identity::GangSource;
use crate::gang::record::GangRecord;
use crate::host::Host;
use crate::objects::pod::Pod;

impl Host {
    /// Adds a pod to the gang it declares, or to its successors while pods of an older owner are left.
    pub(crate) fn add_to_gang(&mut self, key: &Key, pod: &Pod) -> Arc<str> {
        let (source, owner_uid) = self.source_and_owner_uid(pod);
        let name = source.gang_name();
        let record = self.gangs.get(&name);
        let has_other_owner =
            |record: &GangRecord| !record.pods.contains(key) && record.has_other_owner(&owner_uid);
        if pod.is_finished() && record.is_some_and(has_other_owner) {
            // A finished pod of a gang that no longer exists.
            self.dirty.gangs.extend(self.gangs.remove_pod(key));
            return name;
        }
        let had_successors = record.is_some_and(|record| !record.successors.is_empty());
        if let GangSource::Group(of) = &source {
            // Merged gangs that list it may find now that it does not list them.
            self.dirty.gangs.extend(self.gangs.merged_gangs_with(of).cloned());
        }
        let before = self.gangs.add_pod(key, source, owner_uid);
        self.dirty.gangs.extend(before);
        let has_successors =
            self.gangs.get(&name).is_some_and(|record| !record.successors.is_empty());
        if has_successors && !had_successors {
            let words =
                "pods of a deleted gang of this name have not terminated: it starts when they have";
            self.record_event(&name, EventType::Normal, ("WaitingForTermination", "Wait"), words);
        }
        name
    }

    /// Whether a gang was deleted and another of its name exists.
    pub(crate) fn is_superseded(&self, record: &GangRecord) -> bool {
        if !record.successors.is_empty() {
            return true;
        }
        let Some(owner_uid) = &record.owner_uid else { return false };
        let object = self.source_object(&record.source);
        let uid = object.and_then(|(_, object)| object.metadata.uid.as_deref());
        uid.is_some_and(|uid| **owner_uid != *uid)
    }

    /// Ends a superseded gang, and starts its successor when no pod of it is left.
    pub(crate) fn start_successor(&mut self, name: &Arc<str>) {
        let record = self.gangs.get(name).expect("the gang has a record");
        let is_live = |key: &Key| self.cache.pods.get(key).is_some_and(|pod| !pod.is_finished());
        if record.pods.iter().any(is_live) {
            return self.reconcile_phase(name);
        }
        let (source, successors) = (record.source.clone(), record.successors.clone());
        self.remove_gang(name);
        if self.gangs.get(name).is_some() {
            return; // its order is rolled back first
        }
        if !matches!(source, GangSource::Gang { .. }) {
            // The garbage collector would delete it later, and with it the status of the successor.
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
