//! The registry of gangs: the record of each gang by name, and the gang of each pod.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use muster_api::dialects::GroupRef;
use muster_core::event::Refusal;
use rustc_hash::FxHashMap;

use crate::cache::store::Key;
use crate::gang::identity::GangSource;
use crate::gang::record::GangRecord;

/// All gangs by name, and the gang of each pod.
#[derive(Debug, Default)]
pub(crate) struct GangRegistry {
    by_name: BTreeMap<Arc<str>, GangRecord>,
    /// Those that cannot be taken in.
    blocked: BTreeSet<Arc<str>>,
    of_pod: FxHashMap<Key, Arc<str>>,
    /// Gangs of several groups, by each of these.
    merged: BTreeMap<GroupRef, BTreeSet<Arc<str>>>,
}

impl GangRegistry {
    /// The gang of a pod.
    pub(crate) fn gang_of(&self, pod: &str) -> Option<(&Arc<str>, &GangRecord)> {
        let name = self.of_pod.get(pod)?;
        Some((name, self.by_name.get(name)?))
    }
    pub(crate) fn get(&self, name: &str) -> Option<&GangRecord> {
        self.by_name.get(name)
    }
    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut GangRecord> {
        self.by_name.get_mut(name)
    }
    pub(crate) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.by_name.keys()
    }

    /// A gang there is, with or without pods.
    pub(crate) fn ensure(&mut self, source: GangSource) -> &mut GangRecord {
        let name = source.gang_name();
        if let GangSource::Merged(groups) = &source {
            for group in groups.iter() {
                self.merged.entry(group.clone()).or_default().insert(name.clone());
            }
        }
        self.by_name.entry(name).or_insert_with(|| GangRecord::new(source))
    }

    /// Gangs of several groups of which this is one, by what some pod says.
    pub(crate) fn merged_gangs_with(&self, group: &GroupRef) -> impl Iterator<Item = &Arc<str>> {
        self.merged.get(group).into_iter().flatten()
    }

    /// A pod belongs to a gang, as what this one made. Says which it belonged to before, if that was another.
    pub(crate) fn add_pod(
        &mut self,
        pod: &Key,
        source: GangSource,
        owner_uid: Option<Arc<str>>,
    ) -> Option<Arc<str>> {
        let name = source.gang_name();
        let before = self.of_pod.insert(pod.clone(), name.clone()).filter(|before| *before != name);
        if let Some(record) = before.as_deref().and_then(|before| self.by_name.get_mut(before)) {
            record.pods.remove(pod);
            record.successors.remove(pod);
            record.released.remove(pod);
        }
        let record = self.ensure(source);
        if record.creating_pods.remove(pod) {
            record.create_backoff.made();
        }
        record.create_failed &= !record.creating_pods.is_empty();
        if record.pods.contains(pod) {
            return before; // whoever is found above what made it, it is of those it came with
        }
        if record.has_other_owner(&owner_uid) && !record.pods.is_empty() {
            record.successors.insert(pod.clone());
            return before;
        }
        if record.pods.is_empty() || record.owner_uid.is_none() {
            record.owner_uid = owner_uid;
        }
        record.pods.insert(pod.clone());
        before
    }

    /// A pod is no more, or nobody's. Says whose it was.
    pub(crate) fn remove_pod(&mut self, pod: &str) -> Option<Arc<str>> {
        let name = self.of_pod.remove(pod)?;
        if let Some(record) = self.by_name.get_mut(&name) {
            record.pods.remove(pod);
            record.successors.remove(pod);
            record.assigned_nodes.remove(pod);
            record.released.remove(pod);
            record.deleting_pods.remove(pod);
            record.pod_roles.remove(pod);
            record.pod_ranks.remove(pod);
        }
        Some(name)
    }

    /// A gang cannot be taken in, or nothing is in its way any more. Whether that is news.
    pub(crate) fn set_blocked(&mut self, name: &Arc<str>, why: Option<String>) -> bool {
        let Some(record) = self.by_name.get_mut(name) else { return false };
        record.world_refusal = None;
        let before = record.blocked.take();
        record.blocked = match why {
            Some(why) => {
                self.blocked.insert(name.clone());
                let since = before.as_ref().map_or_else(Instant::now, |(_, since)| *since);
                Some((why, since))
            }
            None => {
                self.blocked.remove(name);
                None
            }
        };
        before.map(|(why, _)| why) != record.blocked.as_ref().map(|(why, _)| why.clone())
    }

    /// The World does not take a gang in.
    pub(crate) fn set_refused(&mut self, name: &Arc<str>, why: Refusal) {
        self.set_blocked(name, Some(why.to_string()));
        if let Some(record) = self.by_name.get_mut(name) {
            record.world_refusal = Some(why);
        }
    }

    /// Gangs that cannot be taken in.
    pub(crate) fn blocked(&self) -> impl Iterator<Item = &Arc<str>> {
        self.blocked.iter()
    }

    /// A gang is over.
    pub(crate) fn remove(&mut self, name: &str) {
        self.blocked.remove(name);
        if let Some(record) = self.by_name.remove(name) {
            if let GangSource::Merged(groups) = &record.source {
                for of in groups.iter() {
                    let names = self.merged.entry(of.clone()).or_default();
                    names.remove(name);
                    if names.is_empty() {
                        self.merged.remove(of);
                    }
                }
            }
            for pod in record.pods.into_iter().chain(record.successors) {
                self.of_pod.remove(&pod);
            }
        }
    }
}
