//! Counts of the members of each spread group, by node.
//!
//! Groups are numbered, and counts are by leaf and node, since each query is about one place. A gang that should be
//! spread over nodes and over zones in the same group is counted once.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_core::World;
use muster_core::gang::{RoleSpec, Seat};
use muster_core::id::{DomainIdx, NodeIdx};

/// The number of a spread group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct SpreadGroup(u32);

/// Members on each node, by its leaf.
pub(crate) type NodeCounts = BTreeMap<DomainIdx, BTreeMap<NodeIdx, u32>>;

/// All members that should be spread, by group.
#[derive(Clone, Debug, Default)]
pub(crate) struct SpreadCounts {
    by_name: BTreeMap<Arc<str>, SpreadGroup>,
    spread_counts: Vec<Arc<NodeCounts>>,
}

/// The spread groups of a role, each of them once.
pub(crate) fn spread_groups(role: &RoleSpec) -> impl Iterator<Item = &Arc<str>> {
    let spread = &role.spread;
    let is_first = |at: &usize| spread[..*at].iter().all(|one| one.among != spread[*at].among);
    (0..spread.len()).filter(is_first).map(|at| &spread[at].among)
}

impl SpreadCounts {
    /// Counts all members that have seats in the World.
    pub(crate) fn of(world: &World) -> Self {
        let mut all = Self::default();
        for (_, gang) in world.gangs() {
            for seat in &gang.seats {
                for group in spread_groups(&gang.spec.roles[usize::from(seat.role)]) {
                    let group = all.group(group);
                    if let Some(node) = world.node(seat.node) {
                        all.count(group, node.leaf, seat, |there, members| there + members);
                    }
                }
            }
        }
        all
    }

    pub(crate) fn group(&mut self, among: &Arc<str>) -> SpreadGroup {
        if let Some(group) = self.by_name.get(among) {
            return *group;
        }
        let group = SpreadGroup(self.spread_counts.len() as u32);
        self.by_name.insert(among.clone(), group);
        self.spread_counts.push(Arc::default());
        group
    }

    pub(crate) fn get(&self, group: SpreadGroup) -> &NodeCounts {
        &self.spread_counts[group.0 as usize]
    }

    /// Counts members of a seat.
    pub(crate) fn count(
        &mut self,
        group: SpreadGroup,
        leaf: DomainIdx,
        seat: &Seat,
        count: fn(u32, u32) -> u32,
    ) {
        let here = Arc::make_mut(&mut self.spread_counts[group.0 as usize]);
        let members = here.entry(leaf).or_default().entry(seat.node).or_default();
        *members = count(*members, u32::from(seat.members));
    }

    /// The counts of a group, to be restored later.
    pub(crate) fn saved(&self, group: SpreadGroup) -> Arc<NodeCounts> {
        self.spread_counts[group.0 as usize].clone()
    }

    pub(crate) fn restore(&mut self, group: SpreadGroup, node_counts: Arc<NodeCounts>) {
        self.spread_counts[group.0 as usize] = node_counts;
    }
}
