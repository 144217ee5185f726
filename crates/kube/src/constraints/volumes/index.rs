//! All volumes there are, taken apart once each time they change, and who gets which.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::api::DynamicObject;
use muster_core::topology::HOSTNAME;

use crate::cache::store::Moved;
use crate::constraints::volumes::volume::{Shape, StoredVolume};
use crate::objects::node::Node;

/// Volumes by name, and by what they are looked for by.
#[derive(Debug, Default)]
pub(crate) struct VolumeIndex {
    all: BTreeMap<Arc<str>, StoredVolume>,
    by_class: BTreeMap<String, BTreeSet<Arc<str>>>,
    by_home: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    by_claim: BTreeMap<String, BTreeSet<Arc<str>>>,
}

impl VolumeIndex {
    /// Takes a change in, and says on which nodes volumes are others now, as their labels call them.
    pub(crate) fn take(&mut self, moved: &Moved<DynamicObject>) -> BTreeSet<Arc<str>> {
        let is = moved.is.as_deref().and_then(StoredVolume::read);
        let was = self.all.remove(&moved.key);
        if was == is {
            self.all.extend(is.map(|disk| (moved.key.clone(), disk)));
            return BTreeSet::new();
        }
        let homes = [&was, &is].into_iter().flatten().filter_map(|disk| disk.home.clone());
        let homes = homes.collect();
        if let Some(was) = was {
            self.index(&moved.key, &was, false);
        }
        if let Some(is) = is {
            self.index(&moved.key, &is, true);
            self.all.insert(moved.key.clone(), is);
        }
        homes
    }

    fn index(&mut self, name: &Arc<str>, disk: &StoredVolume, is_there: bool) {
        list(&mut self.by_class, disk.class().to_owned(), name, is_there);
        if let Some(home) = &disk.home {
            list(&mut self.by_home, home.clone(), name, is_there);
        }
        if let Some(owner) = &disk.owner {
            list(&mut self.by_claim, owner.claim.clone(), name, is_there);
        }
    }

    fn named<'a>(
        &'a self,
        names: Option<&'a BTreeSet<Arc<str>>>,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a StoredVolume)> {
        names.into_iter().flatten().filter_map(|name| self.all.get_key_value(name))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&StoredVolume> {
        self.all.get(name)
    }

    /// Volumes that are what a claim asks for, whoever has them.
    pub(crate) fn like<'a>(
        &'a self,
        shape: &'a Shape,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a StoredVolume)> {
        self.named(self.by_class.get(shape.class())).filter(|(_, disk)| disk.suits(shape))
    }

    /// The volume that is kept for a claim.
    pub(crate) fn kept_for(&self, claim: &str, uid: Option<&str>) -> Option<&Arc<str>> {
        let mine = self.named(self.by_claim.get(claim));
        mine.into_iter().find(|(_, disk)| disk.is_kept_for(claim, uid)).map(|(name, _)| name)
    }

    /// Volumes that only this node reaches.
    pub(crate) fn only_on(&self, node: &Node) -> impl Iterator<Item = (&Arc<str>, &StoredVolume)> {
        self.named(self.by_home.get(called(node)))
    }

    /// Whether two claims could ever want the same volume.
    pub(crate) fn could_meet(&self, one: &Shape, other: &Shape) -> bool {
        self.like(one).any(|(_, disk)| disk.suits(other))
    }

    /// Whether a volume is kept for a claim of this name.
    pub(crate) fn is_any_kept_for(&self, claim: &str) -> bool {
        self.by_claim.contains_key(claim)
    }

    /// Whether some volumes are only on this node.
    pub(crate) fn is_home(&self, node: &Node) -> bool {
        self.by_home.contains_key(called(node))
    }
}

/// Lists a name under a key, or takes it out; nothing is kept of keys without names.
fn list<K: Ord>(
    lists: &mut BTreeMap<K, BTreeSet<Arc<str>>>,
    key: K,
    name: &Arc<str>,
    is_there: bool,
) {
    if is_there {
        lists.entry(key).or_default().insert(name.clone());
    } else if let Entry::Occupied(mut list) = lists.entry(key) {
        list.get_mut().remove(name);
        if list.get().is_empty() {
            list.remove();
        }
    }
}

/// What a node's label calls it.
pub(crate) fn called(node: &Node) -> &str {
    let label = node.metadata.labels.as_ref().and_then(|labels| labels.get(HOSTNAME));
    label.map(String::as_str).or(node.metadata.name.as_deref()).unwrap_or_default()
}

/// Gives each claim a volume of its own out of those that will do for it, the smallest first to the smallest claim, as far
/// as there are enough; nobody goes without who could have one if others took another.
pub(crate) fn give_out(wanted: &[Vec<Arc<str>>]) -> Vec<Option<Arc<str>>> {
    let mut has: BTreeMap<Arc<str>, usize> = BTreeMap::new();
    for at in 0..wanted.len() {
        seek(at, wanted, &mut has, &mut BTreeSet::new());
    }
    let mut given = vec![None; wanted.len()];
    for (disk, at) in has {
        given[at] = Some(disk);
    }
    given
}

/// Finds a volume for one of them, if need be by having another take the next that will do.
fn seek(
    at: usize,
    wanted: &[Vec<Arc<str>>],
    has: &mut BTreeMap<Arc<str>, usize>,
    tried: &mut BTreeSet<Arc<str>>,
) -> bool {
    if let Some(free) = wanted[at].iter().find(|disk| !has.contains_key(*disk)) {
        has.insert(free.clone(), at);
        return true;
    }
    for disk in &wanted[at] {
        if tried.insert(disk.clone()) && seek(has[disk], wanted, has, tried) {
            has.insert(disk.clone(), at);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use crate::constraints::volumes::index::*;

    #[test]
    fn every_claim_has_a_volume_of_its_own_as_far_as_there_are_enough() {
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
            let given = give_out(&wanted);
            let given: Vec<&str> = given.iter().map(|one| one.as_deref().unwrap_or("-")).collect();
            assert_eq!(given.join(" "), expected, "{wanted:?}");
        }
    }
}
