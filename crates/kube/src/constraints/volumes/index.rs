//! Index of all PersistentVolumes, parsed once per change, and the matching of claims to volumes.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::api::DynamicObject;
use muster_core::topology::HOSTNAME;

use crate::cache::store::ObjectChange;
use crate::constraints::volumes::volume::{ClaimRequirements, PersistentVolume};
use crate::objects::node::Node;

/// Volumes by name, storage class, hostname and claim.
#[derive(Debug, Default)]
pub(crate) struct VolumeIndex {
    all: BTreeMap<Arc<str>, PersistentVolume>,
    by_class: BTreeMap<String, BTreeSet<Arc<str>>>,
    by_only_hostname: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    by_claim: BTreeMap<String, BTreeSet<Arc<str>>>,
}

impl VolumeIndex {
    /// Applies a change. Returns the hostname labels of nodes whose node-local volumes changed.
    pub(crate) fn update(&mut self, moved: &ObjectChange<DynamicObject>) -> BTreeSet<Arc<str>> {
        let is = moved.is.as_deref().and_then(PersistentVolume::read);
        let was = self.all.remove(&moved.key);
        if was == is {
            self.all.extend(is.map(|volume| (moved.key.clone(), volume)));
            return BTreeSet::new();
        }
        let hostnames =
            [&was, &is].into_iter().flatten().filter_map(|volume| volume.only_hostname.clone());
        let hostnames = hostnames.collect();
        if let Some(was) = was {
            self.set_indexed(&moved.key, &was, false);
        }
        if let Some(is) = is {
            self.set_indexed(&moved.key, &is, true);
            self.all.insert(moved.key.clone(), is);
        }
        hostnames
    }

    fn set_indexed(&mut self, name: &Arc<str>, volume: &PersistentVolume, is_listed: bool) {
        list(&mut self.by_class, volume.class().to_owned(), name, is_listed);
        if let Some(only_hostname) = &volume.only_hostname {
            list(&mut self.by_only_hostname, only_hostname.clone(), name, is_listed);
        }
        if let Some(claim_ref) = &volume.claim_ref {
            list(&mut self.by_claim, claim_ref.claim.clone(), name, is_listed);
        }
    }

    fn named<'a>(
        &'a self,
        names: Option<&'a BTreeSet<Arc<str>>>,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a PersistentVolume)> {
        names.into_iter().flatten().filter_map(|name| self.all.get_key_value(name))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&PersistentVolume> {
        self.all.get(name)
    }

    /// Volumes that meet a claim's requirements, also those that other claims have.
    pub(crate) fn matching<'a>(
        &'a self,
        requirements: &'a ClaimRequirements,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a PersistentVolume)> {
        self.named(self.by_class.get(requirements.class()))
            .filter(|(_, volume)| volume.matches(requirements))
    }

    /// The volume whose claim ref names a claim.
    pub(crate) fn claimed_by(&self, claim: &str, uid: Option<&str>) -> Option<&Arc<str>> {
        let mine = self.named(self.by_claim.get(claim));
        mine.into_iter().find(|(_, volume)| volume.is_claimed_by(claim, uid)).map(|(name, _)| name)
    }

    /// Node-local volumes of this node.
    pub(crate) fn node_local(
        &self,
        node: &Node,
    ) -> impl Iterator<Item = (&Arc<str>, &PersistentVolume)> {
        self.named(self.by_only_hostname.get(hostname(node)))
    }

    /// Whether some volume meets the requirements of both claims.
    pub(crate) fn overlap(&self, one: &ClaimRequirements, other: &ClaimRequirements) -> bool {
        self.matching(one).any(|(_, volume)| volume.matches(other))
    }

    /// Whether the claim ref of some volume names a claim of this name.
    pub(crate) fn is_any_claimed_by(&self, claim: &str) -> bool {
        self.by_claim.contains_key(claim)
    }

    /// Whether this node has node-local volumes.
    pub(crate) fn has_node_local_volumes(&self, node: &Node) -> bool {
        self.by_only_hostname.contains_key(hostname(node))
    }
}

/// Lists a name under a key, or removes it; keys without names are dropped.
fn list<K: Ord>(
    lists: &mut BTreeMap<K, BTreeSet<Arc<str>>>,
    key: K,
    name: &Arc<str>,
    is_listed: bool,
) {
    if is_listed {
        lists.entry(key).or_default().insert(name.clone());
    } else if let Entry::Occupied(mut list) = lists.entry(key) {
        list.get_mut().remove(name);
        if list.get().is_empty() {
            list.remove();
        }
    }
}

/// A node's hostname label, or its name where it has none.
pub(crate) fn hostname(node: &Node) -> &str {
    let label = node.metadata.labels.as_ref().and_then(|labels| labels.get(HOSTNAME));
    label.map(String::as_str).or(node.metadata.name.as_deref()).unwrap_or_default()
}

/// Matches each claim with a volume of its own out of its candidates, in order of claims and candidates (smallest
/// first), as far as there are enough: a maximum bipartite matching, so no claim goes without a volume that it could
/// have if others took another.
pub(crate) fn match_volumes(wanted: &[Vec<Arc<str>>]) -> Vec<Option<Arc<str>>> {
    let mut taken_by: BTreeMap<Arc<str>, usize> = BTreeMap::new();
    for at in 0..wanted.len() {
        augment(at, wanted, &mut taken_by, &mut BTreeSet::new());
    }
    let mut matched = vec![None; wanted.len()];
    for (volume, at) in taken_by {
        matched[at] = Some(volume);
    }
    matched
}

/// Finds a volume for one claim, if need be along an augmenting path: another claim takes its next candidate.
fn augment(
    at: usize,
    wanted: &[Vec<Arc<str>>],
    taken_by: &mut BTreeMap<Arc<str>, usize>,
    tried: &mut BTreeSet<Arc<str>>,
) -> bool {
    if let Some(free) = wanted[at].iter().find(|volume| !taken_by.contains_key(*volume)) {
        taken_by.insert(free.clone(), at);
        return true;
    }
    for volume in &wanted[at] {
        if tried.insert(volume.clone()) && augment(taken_by[volume], wanted, taken_by, tried) {
            taken_by.insert(volume.clone(), at);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use crate::constraints::volumes::index::*;

    #[test]
    fn every_claim_gets_its_own_volume_as_far_as_there_are_enough() {
        for (wanted, expected) in [
            ("a b|a b", "a b"),
            ("a b|a", "b a"),
            ("a b|b c|a", "b c a"),
            ("a|a", "a -"),
            ("|a", "- a"),
            ("a b c|a b|a|c d", "c b a d"),
        ] {
            let wanted: Vec<Vec<Arc<str>>> = wanted
                .split('|')
                .map(|one| one.split_whitespace().map(Arc::from).collect())
                .collect();
            let matched = match_volumes(&wanted);
            let matched: Vec<&str> =
                matched.iter().map(|one| one.as_deref().unwrap_or("-")).collect();
            assert_eq!(matched.join(" "), expected, "{wanted:?}");
        }
    }
}
