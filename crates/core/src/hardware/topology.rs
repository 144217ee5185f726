//! The topology tree: zones, blocks, racks, NVLink domains, or whatever levels the operator names.
//!
//! Every node is on a full path of domains, one per level. A node that lacks a level's label is in a nameless domain
//! there: it counts for the levels above, but "one rack" cannot be promised in it.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::hardware::constraint::Labels;
use crate::id::{DomainIdx, Id, IndexVec, LevelIdx};

/// The label that names the node itself; it is the implicit last level.
pub const HOSTNAME: &str = "kubernetes.io/hostname";
/// What the implicit last level is called in manifests.
pub const NODE_LEVEL: &str = "node";

/// One level of the tree.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LevelSpec {
    /// What people call it, such as `rack`.
    pub name: Arc<str>,
    /// The node label that says which domain a node is in.
    pub label: Arc<str>,
}

/// The levels of the tree, widest first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Levels(pub Vec<LevelSpec>);

impl Default for Levels {
    /// The levels of a cluster that configures none.
    fn default() -> Self {
        let levels = [
            ("region", "topology.kubernetes.io/region"),
            ("zone", "topology.kubernetes.io/zone"),
            ("block", "topology.muster.sh/block"),
            ("rack", "topology.muster.sh/rack"),
            ("nvlink", "topology.muster.sh/nvlink"),
        ];
        Self(
            levels.map(|(name, label)| LevelSpec { name: name.into(), label: label.into() }).into(),
        )
    }
}

/// A level a gang can ask to stay within.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Level {
    /// One of the tree's levels.
    Domain(LevelIdx),
    /// A single node.
    Node,
}

impl Levels {
    /// The level with this name or this label.
    pub fn find(&self, name: &str) -> Option<Level> {
        if name == NODE_LEVEL || name == HOSTNAME {
            return Some(Level::Node);
        }
        let position =
            self.0.iter().position(|level| *level.name == *name || *level.label == *name)?;
        Some(Level::Domain(LevelIdx::from_index(position)))
    }
    /// What a level is called.
    pub fn name(&self, level: Level) -> &str {
        match level {
            Level::Domain(idx) => &self.0[idx.index()].name,
            Level::Node => NODE_LEVEL,
        }
    }
    /// Whether a label only says where a node is.
    pub fn is_place(&self, label: &str) -> bool {
        label == HOSTNAME || self.0.iter().any(|level| *level.label == *label)
    }
}

/// One place in the tree.
#[derive(Clone, Debug)]
pub struct Domain {
    /// The label's value; empty for nodes that lack the label, and for the root.
    pub name: Arc<str>,
    /// The domain around it; the root is its own.
    pub parent: DomainIdx,
    /// 0 for the root, `l + 1` for a domain of level `l`.
    pub depth: u8,
    /// Domains directly inside.
    pub children: Vec<DomainIdx>,
}

/// The tree as the nodes seen so far draw it.
#[derive(Clone, Debug)]
pub struct Topology {
    levels: Levels,
    domains: IndexVec<DomainIdx, Domain>,
    by_name: FxHashMap<(DomainIdx, Arc<str>), DomainIdx>,
    by_depth: Vec<Vec<DomainIdx>>,
}

/// The whole cluster.
pub const ROOT: DomainIdx = DomainIdx(0);

impl Topology {
    /// A tree with these levels and no domain yet but the root.
    pub fn new(levels: Levels) -> Self {
        let mut domains = IndexVec::new();
        domains.push(Domain { name: "".into(), parent: ROOT, depth: 0, children: Vec::new() });
        let mut by_depth = vec![Vec::new(); levels.0.len() + 1];
        by_depth[0].push(ROOT);
        Self { levels, domains, by_name: FxHashMap::default(), by_depth }
    }
    /// The levels.
    pub fn levels(&self) -> &Levels {
        &self.levels
    }
    /// Number of domains, the root included.
    pub fn len(&self) -> usize {
        self.domains.len()
    }
    /// Never: there is always the root.
    pub fn is_empty(&self) -> bool {
        false
    }
    /// One domain.
    pub fn domain(&self, idx: DomainIdx) -> &Domain {
        &self.domains[idx]
    }
    /// Whether nodes are directly in it.
    pub fn is_leaf(&self, idx: DomainIdx) -> bool {
        usize::from(self.domains[idx].depth) == self.levels.0.len()
    }
    /// Domains of one level, in order of appearance, nameless ones included.
    pub fn of_level(&self, level: LevelIdx) -> &[DomainIdx] {
        &self.by_depth[level.index() + 1]
    }
    /// The domain itself and everything around it, the root last.
    pub fn path(&self, idx: DomainIdx) -> impl Iterator<Item = DomainIdx> + '_ {
        std::iter::successors(Some(idx), |d| (*d != ROOT).then(|| self.domains[*d].parent))
    }
    /// The domain of a level that a domain lies in, or is.
    pub fn around(&self, idx: DomainIdx, level: LevelIdx) -> Option<DomainIdx> {
        self.path(idx).find(|domain| self.domains[*domain].depth == level.0 + 1)
    }
    /// Whether `inner` is `outer` or lies within it.
    pub fn contains(&self, outer: DomainIdx, inner: DomainIdx) -> bool {
        self.path(inner).any(|domain| domain == outer)
    }
    /// Whether a gang can be promised to stay within it.
    pub fn is_named(&self, idx: DomainIdx) -> bool {
        !self.domains[idx].name.is_empty()
    }
    /// The leaf for these labels, created with everything around it when it is new.
    pub fn leaf_for(&mut self, labels: &Labels) -> DomainIdx {
        let mut here = ROOT;
        for depth in 0..self.levels.0.len() {
            let name = labels.get(&self.levels.0[depth].label).cloned().unwrap_or_default();
            here = match self.by_name.get(&(here, name.clone())) {
                Some(child) => *child,
                None => self.add_child(here, name),
            };
        }
        here
    }
    /// The value the domains around `leaf` give to a label that says where a node is.
    pub fn label_at(&self, leaf: DomainIdx, label: &str) -> Option<Arc<str>> {
        let level = self.levels.0.iter().position(|level| *level.label == *label)?;
        let domain = self.path(leaf).find(|d| usize::from(self.domains[*d].depth) == level + 1)?;
        Some(self.domains[domain].name.clone()).filter(|name| !name.is_empty())
    }
    /// A readable path such as `us-east-1/us-east-1a/b1`, without the nameless parts.
    pub fn display(&self, idx: DomainIdx) -> String {
        let mut names: Vec<&str> = self.path(idx).map(|d| &*self.domains[d].name).collect();
        names.retain(|name| !name.is_empty());
        names.reverse();
        names.join("/")
    }

    fn add_child(&mut self, parent: DomainIdx, name: Arc<str>) -> DomainIdx {
        let depth = self.domains[parent].depth + 1;
        let child = Domain { name: name.clone(), parent, depth, children: Vec::new() };
        let idx = self.domains.push(child);
        self.domains[parent].children.push(idx);
        self.by_name.insert((parent, name), idx);
        self.by_depth[usize::from(depth)].push(idx);
        idx
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(k, v)| (Arc::from(*k), Arc::from(*v))).collect()
    }

    #[test]
    fn the_same_rack_name_in_two_zones_is_two_racks() {
        let mut tree = Topology::new(Levels::default());
        let zone = "topology.kubernetes.io/zone";
        let rack = "topology.muster.sh/rack";
        let a = tree.leaf_for(&labels(&[(zone, "a"), (rack, "r1")]));
        let b = tree.leaf_for(&labels(&[(zone, "b"), (rack, "r1")]));
        assert_ne!(a, b);
        assert_eq!(tree.leaf_for(&labels(&[(zone, "a"), (rack, "r1")])), a);
        assert_eq!(tree.display(a), "a/r1");
        assert_eq!(tree.label_at(a, rack).as_deref(), Some("r1"));
    }

    #[test]
    fn a_missing_label_is_a_nameless_domain() {
        let mut tree = Topology::new(Levels::default());
        let leaf = tree.leaf_for(&Labels::new());
        assert!(tree.is_leaf(leaf) && !tree.is_named(leaf));
        assert_eq!(tree.label_at(leaf, "topology.kubernetes.io/zone"), None);
        assert!(tree.contains(ROOT, leaf));
    }

    #[test]
    fn levels_are_found_by_name_and_by_label() {
        let levels = Levels::default();
        assert_eq!(levels.find("rack"), levels.find("topology.muster.sh/rack"));
        assert_eq!(levels.find("node"), Some(Level::Node));
        assert_eq!(levels.find("shelf"), None);
    }
}
