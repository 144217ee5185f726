//! Empty seats of a gang: kept for members that are recreated, given up for good, or left because of their node.
//!
//! A member that failed is recreated by its owner and finds its seat. One that is done is not: its seat is given up, also in
//! the recorded placement. No pod is bound to a seat on a node that accepts no pods now.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_core::event::RoleSeats;
use muster_core::gang::Gang;
use muster_core::id::{GangId, NodeIdx};
use muster_core::plan::StopReason;

use crate::cache::store::Key;
use crate::gang::record::GangRecord;
use crate::host::Host;
use crate::objects::pod::Pod;
use crate::schedule::phase::PodsByState;

/// The seats of a gang, by role and node.
#[derive(Debug, Default)]
pub(crate) struct Seats {
    /// Empty, on nodes that accept pods.
    pub(crate) open: BTreeMap<u16, Vec<Arc<str>>>,
    /// Empty, on nodes that accept no pods now.
    pub(crate) barred: BTreeMap<u16, Vec<Arc<str>>>,
    /// Members that are on a node, or assigned to one.
    pub(crate) there: BTreeMap<u16, u32>,
}

impl Seats {
    fn left(&self, role: u16) -> u32 {
        self.open.get(&role).map_or(0, |nodes| nodes.len() as u32)
    }

    /// How many members a role has and could have on the seats that are open.
    pub(crate) fn possible_members(&self, role: u16) -> u32 {
        self.there.get(&role).copied().unwrap_or(0) + self.left(role)
    }
}

impl Host {
    /// The occupied and empty seats of a gang. A pod that has none of its roles any more still occupies a seat: no two pods
    /// share one.
    pub(crate) fn seats(&self, record: &GangRecord, gang: &Gang, by_state: &PodsByState) -> Seats {
        let mut left: BTreeMap<u16, Vec<Arc<str>>> = BTreeMap::new();
        // A gang that is being resized fills its future seats.
        let seats = gang.resize.as_ref().map_or(&gang.seats, |resize| &resize.to);
        for seat in seats {
            let Some(node) = self.world.node_name(seat.node) else { continue };
            let seats = left.entry(seat.role).or_default();
            seats.extend((0..seat.members).map(|_| node.clone()));
        }
        let mut all = Seats::default();
        let (known, others): (Vec<_>, Vec<_>) =
            by_state.bound.iter().partition(|(key, _)| record.pod_roles.contains_key(key));
        for (key, node) in known {
            let role = record.pod_roles[key];
            *all.there.entry(role).or_default() += 1;
            if let Some(seats) = left.get_mut(&role) {
                take(seats, node);
            }
        }
        for (_, node) in others {
            let _ = left.values_mut().any(|seats| take(seats, node));
        }
        let takes = |role, node: &str| {
            self.world.node_named(node).is_some_and(|node| self.accepts(gang, role, node))
        };
        for (role, nodes) in left {
            let (open, barred) = nodes.into_iter().partition(|node| takes(role, node));
            all.open.insert(role, open);
            all.barred.insert(role, barred);
        }
        all
    }

    /// Whether a member of a role could be bound to a node now: the node is usable, and the role tolerates its taints.
    fn accepts(&self, gang: &Gang, role: u16, node: NodeIdx) -> bool {
        let role = gang.spec.roles.get(usize::from(role));
        self.world.node(node).zip(role).is_some_and(|(node, role)| {
            node.usable && role.constraints.tolerates(&self.world.class(node.class).taints)
        })
    }

    /// Whether all bound pods are terminating and no resize is under way: pods that are created now are no replacements, but
    /// start together when the others are gone.
    pub(crate) fn is_terminating(&self, gang: &Gang, by_state: &PodsByState) -> bool {
        let leaves = |key: &Key| self.cache.pods.get(key).is_some_and(|pod| pod.is_terminating());
        let mut bound = by_state.bound.iter();
        gang.resize.is_none() && !by_state.bound.is_empty() && bound.all(|(key, _)| leaves(key))
    }

    /// Stops a gang without bound pods whose members have changed, or that was enlarged, so that it starts with its new spec.
    /// Returns whether it does.
    pub(crate) fn restart_if_changed(
        &mut self,
        name: &Arc<str>,
        id: GangId,
        by_state: &PodsByState,
    ) -> bool {
        let gang = self.world.gang(id).expect("the World has the gang");
        let record = self.gangs.get(name).expect("the gang has a record");
        let has_changed = record.differs_from_seats || gang.next.is_some();
        if !has_changed
            || !record.placement_written
            || !by_state.bound.is_empty()
            || by_state.unbound.is_empty()
        {
            return false;
        }
        tracing::info!(gang = &**name, "its seats were taken for another spec: starts over");
        self.stop_gang(id, StopReason::Moved);
        true
    }

    /// Whether a node is being drained: it is cordoned, or being deleted.
    fn is_draining(&self, node: &str) -> bool {
        let node = self.cache.nodes.get(node);
        node.is_some_and(|node| {
            node.spec.unschedulable || node.metadata.deletion_timestamp.is_some()
        })
    }

    /// Seats that unbound members of a gang cannot be bound to, by role, and whether the gang needs them for its minimum.
    fn barred_seats(
        &self,
        record: &GangRecord,
        gang: &Gang,
        by_state: &PodsByState,
    ) -> Vec<(u16, Vec<Arc<str>>, bool)> {
        let all_accepted = gang.seats.iter().all(|seat| self.accepts(gang, seat.role, seat.node));
        if by_state.unbound.is_empty() || all_accepted {
            return Vec::new();
        }
        let seats = self.seats(record, gang, by_state);
        let has_too_few_open = |role: u16| {
            let mine =
                by_state.unbound.iter().filter(|key| record.pod_roles.get(*key) == Some(&role));
            mine.count() as u32 > seats.left(role)
        };
        let is_short = |role: u16| {
            let min = gang.spec.roles.get(usize::from(role)).map_or(0, |role| role.min);
            seats.possible_members(role) < min
        };
        let lacking = seats
            .barred
            .iter()
            .filter(|(role, nodes)| !nodes.is_empty() && has_too_few_open(**role));
        lacking.map(|(role, nodes)| (*role, nodes.clone(), is_short(*role))).collect()
    }

    /// Whether a gang lacks a member of its minimum that exists, because its node accepts no pods now.
    pub(crate) fn has_barred_seats(
        &self,
        record: &GangRecord,
        gang: &Gang,
        by_state: &PodsByState,
    ) -> bool {
        self.barred_seats(record, gang, by_state).iter().any(|(_, _, is_short)| *is_short)
    }

    /// Stops a gang that has seats on a draining node for members that wait, so that it starts over elsewhere as a whole; if its
    /// minimum allows it, the gang only gives these seats up. Returns whether it starts over. A node that is only not ready
    /// may come back: see [`Self::expire_binding`].
    pub(crate) fn leave_draining_nodes(
        &mut self,
        name: &Arc<str>,
        id: GangId,
        by_state: &PodsByState,
    ) -> bool {
        let gang = self.world.gang(id).expect("the World has the gang");
        let record = self.gangs.get(name).expect("the gang has a record");
        if !record.placement_written || gang.resize.is_some() {
            return false;
        }
        let mut on_draining: Vec<(u16, Arc<str>)> = Vec::new();
        for (role, nodes, is_short) in self.barred_seats(record, gang, by_state) {
            let nodes: Vec<Arc<str>> =
                nodes.into_iter().filter(|node| self.is_draining(node)).collect();
            let node = nodes.first().and_then(|node| self.world.node_named(node));
            if let Some(node) = node.filter(|_| is_short) {
                tracing::info!(
                    gang = &**name,
                    node = &*nodes[0],
                    "its node is being drained: starts over"
                );
                self.stop_gang(id, StopReason::NodeFailing(node));
                return true;
            }
            on_draining.extend(nodes.into_iter().map(|node| (role, node)));
        }
        if !on_draining.is_empty() {
            self.give_up_seats(name, id, by_state, on_draining);
        }
        false
    }

    /// Gives up seats that a gang can do without; it may get others instead.
    fn give_up_seats(
        &mut self,
        name: &Arc<str>,
        id: GangId,
        by_state: &PodsByState,
        mut unwanted: Vec<(u16, Arc<str>)>,
    ) {
        let gang = self.world.gang(id).expect("the World has the gang");
        let record = self.gangs.get(name).expect("the gang has a record");
        if !by_state.bound.iter().all(|(key, _)| record.pod_roles.contains_key(key)) {
            return;
        }
        let Seats { open, barred, .. } = self.seats(record, gang, by_state);
        let mut sitting = self.occupied_seats(record, &by_state.bound);
        for (role, mut left) in open {
            for node in barred.get(&role).into_iter().flatten() {
                match unwanted.iter().position(|one| *one == (role, node.clone())) {
                    Some(at) => drop(unwanted.swap_remove(at)),
                    None => left.push(node.clone()),
                }
            }
            self.add_seats(&mut sitting, role, &left);
        }
        self.replace_seats(name, id, sitting);
    }

    /// Gives up the seats of members that succeeded, or whose index their Job has given up, unless unbound members can take
    /// them. The seats of members that failed otherwise, or were deleted, are kept: their owner recreates them.
    pub(crate) fn release_finished_seats(
        &mut self,
        name: &Arc<str>,
        id: GangId,
        by_state: &PodsByState,
    ) {
        let gang = self.world.gang(id).expect("the World has the gang");
        let record = self.gangs.get(name).expect("the gang has a record");
        let pods = record.pods.iter().filter_map(|key| self.cache.pods.get(key));
        let is_done = |pod: &Pod| pod.has_succeeded() || self.failed_index_of(pod).is_some();
        let done: Vec<&Arc<Pod>> = pods.filter(|pod| is_done(pod)).collect();
        // A pod that succeeds while it terminates may be recreated.
        let is_sure = !done.is_empty() && !done.iter().any(|pod| pod.is_terminating());
        let is_known = by_state.bound.iter().all(|(key, _)| record.pod_roles.contains_key(key));
        // Seats are kept for members that are yet to be created.
        let is_awaited = record.missing_members > 0 && self.may_have_missing_members(record);
        let is_settled = gang.resize.is_none() && !record.role_sizes.is_empty() && !is_awaited;
        if !is_sure
            || !is_known
            || !is_settled
            || by_state.bound.is_empty()
            || !by_state.unbound.is_empty()
        {
            return;
        }
        let empty: BTreeSet<&str> = done.iter().filter_map(|pod| pod.node()).collect();
        let Seats { open, barred, there } = self.seats(record, gang, by_state);
        let mut sitting = self.occupied_seats(record, &by_state.bound);
        let mut gives_up = false;
        for (role, mut left) in open {
            left.extend(barred.get(&role).into_iter().flatten().cloned());
            let here = there.get(&role).copied().unwrap_or(0);
            let most = record.role_sizes.get(&role).map_or(0, |size| size.max);
            let most = most.saturating_sub(here) as usize;
            gives_up |= left.len() > most;
            left.sort_by_key(|node| empty.contains(&**node));
            left.truncate(most);
            self.add_seats(&mut sitting, role, &left);
        }
        if gives_up {
            self.replace_seats(name, id, sitting);
        }
    }

    /// Adds seats on these nodes.
    pub(crate) fn add_seats(&self, sitting: &mut Vec<RoleSeats>, role: u16, nodes: &[Arc<str>]) {
        for node in nodes.iter().filter_map(|node| self.world.node_named(node)) {
            match sitting.iter_mut().find(|one| one.role == role && one.node == node) {
                Some(one) => one.members += 1,
                None => sitting.push(RoleSeats { role, node, members: 1 }),
            }
        }
    }

    /// Replaces the seats of a gang by these, also in its placement.
    fn replace_seats(&mut self, name: &Arc<str>, id: GangId, sitting: Vec<RoleSeats>) {
        if !sitting.is_empty() && self.seat_observed_pods(name, id, self.now(), sitting) {
            self.write_placement(name, id);
            self.dirty.gangs.insert(name.clone());
        }
    }
}

/// Takes one seat on a node, if there is one.
fn take(seats: &mut Vec<Arc<str>>, node: &Arc<str>) -> bool {
    let at = seats.iter().position(|seat| seat == node);
    at.map(|at| seats.remove(at)).is_some()
}
