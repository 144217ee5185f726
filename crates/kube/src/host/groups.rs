//! Which pods make up which gang, as far as they were seen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_core::gang::GangSpec;
use rustc_hash::FxHashMap;

use crate::intake::Origin;
use crate::shelf::Key;

/// The pods of one gang.
#[derive(Debug)]
pub(super) struct Group {
    /// Why they are one.
    pub(super) origin: Origin,
    /// All of them, also those that are over.
    pub(super) pods: BTreeSet<Key>,
    /// What the World was last told of it.
    pub(super) spec: Option<GangSpec>,
    /// The role each pod plays, by place in the gang's list.
    pub(super) roles: BTreeMap<Key, u16>,
    /// Where pods were told to go and have not been seen yet.
    pub(super) assigned: BTreeMap<Key, Arc<str>>,
    /// Whether its placement is written down, so that pods may be bound.
    pub(super) recorded: bool,
    /// Pods that were told to go.
    pub(super) leaving: BTreeSet<Key>,
    /// Why it cannot be taken in.
    pub(super) trouble: Option<String>,
}

impl Group {
    fn new(origin: Origin) -> Self {
        Self {
            origin,
            pods: BTreeSet::new(),
            spec: None,
            roles: BTreeMap::new(),
            assigned: BTreeMap::new(),
            recorded: false,
            leaving: BTreeSet::new(),
            trouble: None,
        }
    }
}

/// All gangs by name, and the gang of each pod.
#[derive(Debug, Default)]
pub(super) struct Groups {
    by_name: BTreeMap<Arc<str>, Group>,
    of_pod: FxHashMap<Key, Arc<str>>,
}

impl Groups {
    /// Whether a pod belongs to a gang.
    pub(super) fn has(&self, pod: &str) -> bool {
        self.of_pod.contains_key(pod)
    }
    pub(super) fn get(&self, name: &str) -> Option<&Group> {
        self.by_name.get(name)
    }
    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut Group> {
        self.by_name.get_mut(name)
    }
    pub(super) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.by_name.keys()
    }

    /// A gang there is, with or without pods.
    pub(super) fn ensure(&mut self, origin: Origin) -> &mut Group {
        let name = origin.gang_name();
        self.by_name.entry(name).or_insert_with(|| Group::new(origin))
    }

    /// A pod belongs to a gang. Says which it belonged to before, if that was another.
    pub(super) fn join(&mut self, pod: &Key, origin: Origin) -> Option<Arc<str>> {
        let name = origin.gang_name();
        let before = self.of_pod.insert(pod.clone(), name.clone()).filter(|before| *before != name);
        if let Some(group) = before.as_deref().and_then(|before| self.by_name.get_mut(before)) {
            group.pods.remove(pod);
        }
        self.ensure(origin).pods.insert(pod.clone());
        before
    }

    /// A pod is no more, or nobody's. Says whose it was.
    pub(super) fn leave(&mut self, pod: &str) -> Option<Arc<str>> {
        let name = self.of_pod.remove(pod)?;
        if let Some(group) = self.by_name.get_mut(&name) {
            group.pods.remove(pod);
            group.assigned.remove(pod);
            group.leaving.remove(pod);
            group.roles.remove(pod);
        }
        Some(name)
    }

    /// A gang is over.
    pub(super) fn forget(&mut self, name: &str) {
        if let Some(group) = self.by_name.remove(name) {
            for pod in group.pods {
                self.of_pod.remove(&pod);
            }
        }
    }
}
