//! Free capacity, indexed: how many nodes in which state, per domain of the topology tree.
//!
//! The index is updated seat by seat. A query never touches a node that is not needed: a domain answers from its
//! tally, and a leaf gives nodes of one state from a bit set.

use fixedbitset::FixedBitSet;

use crate::hardware::topology::Topology;
use crate::id::{DomainIdx, Id, IndexVec, NodeIdx, StateIdx};

/// Counts of nodes by some key, sorted by key, without zeros.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tally<K>(Vec<(K, u32)>);

impl<K> Default for Tally<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Id> Tally<K> {
    /// Keys and counts.
    #[inline]
    pub fn entries(&self) -> &[(K, u32)] {
        &self.0
    }
    /// Adds to one count.
    pub fn add(&mut self, key: K, count: u32) {
        match self.0.binary_search_by_key(&key, |(k, _)| *k) {
            Ok(at) => self.0[at].1 += count,
            Err(at) => self.0.insert(at, (key, count)),
        }
    }
    /// Takes from one count.
    ///
    /// # Panics
    /// When it is not that large.
    pub fn remove(&mut self, key: K, count: u32) {
        let at = self.0.binary_search_by_key(&key, |(k, _)| *k).expect("counted before");
        self.0[at].1 -= count;
        if self.0[at].1 == 0 {
            self.0.remove(at);
        }
    }
}

/// Slots of a leaf's usable nodes, grouped by the state their node is in.
#[derive(Clone, Debug, Default)]
pub struct Groups(Vec<(StateIdx, FixedBitSet)>);

impl Groups {
    /// Slots in one state, ascending.
    pub fn slots_in(&self, state: StateIdx) -> impl Iterator<Item = u32> + '_ {
        let group = self.0.iter().find(|(s, _)| *s == state);
        group.into_iter().flat_map(|(_, set)| set.ones()).map(|slot| slot as u32)
    }
    /// The same as words of a set, as many as there are slots up to the last.
    pub fn words_in(&self, state: StateIdx) -> &[usize] {
        let group = self.0.iter().find(|(s, _)| *s == state);
        group.map_or(&[], |(_, set)| set.as_slice())
    }
    /// The state a slot's node is in; none when it is not usable.
    pub fn state_of(&self, slot: u32) -> Option<StateIdx> {
        self.0.iter().find(|(_, set)| set.contains(slot as usize)).map(|(state, _)| *state)
    }
    /// Puts slots into a state's group.
    pub fn insert(&mut self, slots: &[u32], state: StateIdx) {
        let at = self.0.iter().position(|(s, _)| *s == state).unwrap_or_else(|| {
            self.0.push((state, FixedBitSet::new()));
            self.0.len() - 1
        });
        let set = &mut self.0[at].1;
        for slot in slots {
            set.grow(*slot as usize + 1);
            set.insert(*slot as usize);
        }
    }
    /// Takes slots out of a state's group.
    ///
    /// # Panics
    /// When the state has no group.
    pub fn remove(&mut self, slots: &[u32], state: StateIdx) {
        let at = self.0.iter().position(|(s, _)| *s == state).expect("in that group");
        let set = &mut self.0[at].1;
        for slot in slots {
            set.set(*slot as usize, false);
        }
        if set.is_clear() {
            self.0.swap_remove(at);
        }
    }
}

/// The nodes directly in one domain.
#[derive(Clone, Debug, Default)]
pub struct Leaf {
    /// Nodes by slot, usable or not; a slot whose node is gone keeps its last number until it is reused.
    nodes: Vec<NodeIdx>,
    vacant: Vec<u32>,
    groups: Groups,
}

impl Leaf {
    /// The node in a slot.
    #[inline]
    pub fn node(&self, slot: u32) -> NodeIdx {
        self.nodes[slot as usize]
    }
    /// Upper bound of slots.
    pub fn slots(&self) -> u32 {
        self.nodes.len() as u32
    }
    /// Which slots are in which state.
    pub fn groups(&self) -> &Groups {
        &self.groups
    }
    fn assign_slot(&mut self, node: NodeIdx) -> u32 {
        if let Some(slot) = self.vacant.pop() {
            self.nodes[slot as usize] = node;
            return slot;
        }
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }
}

/// Tallies of usable nodes per domain, and the nodes themselves per leaf.
#[derive(Clone, Debug, Default)]
pub struct Capacity {
    tallies: IndexVec<DomainIdx, Tally<StateIdx>>,
    leaves: IndexVec<DomainIdx, Leaf>,
}

impl Capacity {
    /// Usable nodes in a domain, by state.
    #[inline]
    pub fn tally(&self, domain: DomainIdx) -> &Tally<StateIdx> {
        &self.tallies[domain]
    }
    /// The nodes of a leaf.
    #[inline]
    pub fn leaf(&self, domain: DomainIdx) -> &Leaf {
        &self.leaves[domain]
    }
    /// Grows to the domains the tree has now.
    pub(crate) fn cover(&mut self, topology: &Topology) {
        self.tallies.grow(topology.len(), Tally::default());
        self.leaves.grow(topology.len(), Leaf::default());
    }
    /// Assigns a slot in a leaf to a node.
    pub(crate) fn assign_slot(&mut self, leaf: DomainIdx, node: NodeIdx) -> u32 {
        self.leaves[leaf].assign_slot(node)
    }
    /// Frees the slot.
    pub(crate) fn free_slot(&mut self, leaf: DomainIdx, slot: u32) {
        self.leaves[leaf].vacant.push(slot);
    }
    /// Adds a usable node in a state.
    pub(crate) fn insert(
        &mut self,
        topology: &Topology,
        leaf: DomainIdx,
        slot: u32,
        state: StateIdx,
    ) {
        self.leaves[leaf].groups.insert(&[slot], state);
        for domain in topology.path(leaf) {
            self.tallies[domain].add(state, 1);
        }
    }
    /// Removes a usable node from a state.
    pub(crate) fn remove(
        &mut self,
        topology: &Topology,
        leaf: DomainIdx,
        slot: u32,
        state: StateIdx,
    ) {
        self.leaves[leaf].groups.remove(&[slot], state);
        for domain in topology.path(leaf) {
            self.tallies[domain].remove(state, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tallies_stay_sorted_and_without_zeros() {
        let mut tally = Tally::default();
        tally.add(StateIdx(5), 2);
        tally.add(StateIdx(1), 1);
        tally.add(StateIdx(5), 1);
        tally.remove(StateIdx(1), 1);
        assert_eq!(tally.entries(), [(StateIdx(5), 3)]);
    }

    #[test]
    fn leaf_returns_nodes_by_state() {
        let mut leaf = Leaf::default();
        for n in 0..70 {
            let slot = leaf.assign_slot(NodeIdx(n));
            leaf.groups.insert(&[slot], StateIdx(n % 2));
        }
        leaf.groups.remove(&[3], StateIdx(1));
        leaf.groups.insert(&[3], StateIdx(0));
        let evens: Vec<u32> =
            leaf.groups.slots_in(StateIdx(0)).map(|slot| leaf.node(slot).0).collect();
        assert_eq!(&evens[..4], [0, 2, 3, 4]);
        assert_eq!(leaf.groups.slots_in(StateIdx(1)).count(), 34);
        assert_eq!(leaf.groups.slots_in(StateIdx(9)).count(), 0);
    }
}
