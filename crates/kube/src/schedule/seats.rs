//! Seats that a gang has and nobody is on: they wait for who comes back, are given up for good, or are of no use where
//! they are.
//!
//! A member that failed comes back, if whoever made it makes another, and finds its seat. One that is done does not: its
//! seat is given up, and what is written down says so too. A seat on a node that takes nobody now is nobody's to fill.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_core::event::Sitting;
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
    /// Nobody is on them, and somebody could be.
    pub(crate) open: BTreeMap<u16, Vec<Arc<str>>>,
    /// Nobody is on them, and nobody can be put there now.
    pub(crate) barred: BTreeMap<u16, Vec<Arc<str>>>,
    /// How many members are on a node, or told to go there.
    pub(crate) there: BTreeMap<u16, u32>,
}

impl Seats {
    fn left(&self, role: u16) -> u32 {
        self.open.get(&role).map_or(0, |nodes| nodes.len() as u32)
    }

    /// How many members a role has, and could have now.
    pub(crate) fn possible_members(&self, role: u16) -> u32 {
        self.there.get(&role).copied().unwrap_or(0) + self.left(role)
    }
}

impl Host {
    /// Who is on which seat of a gang, and which are left. Pods that play none of its roles any more are where they are
    /// all the same: no two share a seat.
    pub(crate) fn seats(&self, record: &GangRecord, gang: &Gang, by_state: &PodsByState) -> Seats {
        let mut left: BTreeMap<u16, Vec<Arc<str>>> = BTreeMap::new();
        // Who is being resized fills the seats it will have.
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

    /// Whether a member of a role could be put on a node now: it is ready, nobody wants it empty, and nothing on it keeps
    /// such members off.
    fn accepts(&self, gang: &Gang, role: u16, node: NodeIdx) -> bool {
        let role = gang.spec.roles.get(usize::from(role));
        self.world.node(node).zip(role).is_some_and(|(node, role)| {
            node.usable && role.constraints.tolerates(&self.world.class(node.class).taints)
        })
    }

    /// Whether everybody who is somewhere is leaving, and none of it is to go on: who comes now is no replacement, but one
    /// of those who will begin together when they are gone.
    pub(crate) fn is_terminating(&self, gang: &Gang, by_state: &PodsByState) -> bool {
        let leaves = |key: &Key| self.cache.pods.get(key).is_some_and(|pod| pod.is_leaving());
        let mut bound = by_state.bound.iter();
        gang.resize.is_none() && !by_state.bound.is_empty() && bound.all(|(key, _)| leaves(key))
    }

    /// A gang of which nobody is anywhere has no use for its seats if it became another, or a larger one: it starts anew
    /// as what it is.
    pub(crate) fn restart_if_changed(
        &mut self,
        name: &Arc<str>,
        id: GangId,
        by_state: &PodsByState,
    ) -> bool {
        let gang = self.world.gang(id).expect("followed");
        let record = self.gangs.get(name).expect("followed");
        let is_another = record.differs_from_seats || gang.next.is_some();
        if !is_another
            || !record.placement_written
            || !by_state.bound.is_empty()
            || by_state.unbound.is_empty()
        {
            return false;
        }
        tracing::info!(gang = &**name, "it is another than its seats were taken for: starts anew");
        self.stop_gang(id, StopReason::Moved);
        true
    }

    /// Whether a node is to be empty: somebody keeps others off it, or it is going.
    fn is_draining(&self, node: &str) -> bool {
        let node = self.cache.nodes.get(node);
        node.is_some_and(|node| {
            node.spec.unschedulable || node.metadata.deletion_timestamp.is_some()
        })
    }

    /// Seats of a gang for members that are there and cannot be put on them, by role, and whether it needs them.
    fn barred_seats(
        &self,
        record: &GangRecord,
        gang: &Gang,
        by_state: &PodsByState,
    ) -> Vec<(u16, Vec<Arc<str>>, bool)> {
        let all_right = gang.seats.iter().all(|seat| self.accepts(gang, seat.role, seat.node));
        if by_state.unbound.is_empty() || all_right {
            return Vec::new();
        }
        let seats = self.seats(record, gang, by_state);
        let come = |role: u16| {
            let mine =
                by_state.unbound.iter().filter(|key| record.pod_roles.get(*key) == Some(&role));
            mine.count() as u32 > seats.left(role)
        };
        let is_short = |role: u16| {
            let min = gang.spec.roles.get(usize::from(role)).map_or(0, |role| role.min);
            seats.possible_members(role) < min
        };
        let lacking = seats.barred.iter().filter(|(role, nodes)| !nodes.is_empty() && come(**role));
        lacking.map(|(role, nodes)| (*role, nodes.clone(), is_short(*role))).collect()
    }

    /// Whether a gang lacks a member that is there, because its node takes nobody now.
    pub(crate) fn has_barred_seats(
        &self,
        record: &GangRecord,
        gang: &Gang,
        by_state: &PodsByState,
    ) -> bool {
        self.barred_seats(record, gang, by_state).iter().any(|(_, _, is_short)| *is_short)
    }

    /// A gang whose members would go back to a node that is to be empty starts over as a whole, elsewhere; it goes on
    /// without those seats if it can. Whether it starts over. A node that is only not ready may come back: see
    /// [`Self::expire_binding`].
    pub(crate) fn leave_draining_nodes(
        &mut self,
        name: &Arc<str>,
        id: GangId,
        by_state: &PodsByState,
    ) -> bool {
        let gang = self.world.gang(id).expect("followed");
        let record = self.gangs.get(name).expect("followed");
        if !record.placement_written || gang.resize.is_some() {
            return false;
        }
        let mut given_up: Vec<(u16, Arc<str>)> = Vec::new();
        for (role, nodes, is_short) in self.barred_seats(record, gang, by_state) {
            let nodes: Vec<Arc<str>> =
                nodes.into_iter().filter(|node| self.is_draining(node)).collect();
            let node = nodes.first().and_then(|node| self.world.node_named(node));
            if let Some(node) = node.filter(|_| is_short) {
                tracing::info!(
                    gang = &**name,
                    node = &*nodes[0],
                    "its node takes nobody: starts over"
                );
                self.stop_gang(id, StopReason::NodeFailing(node));
                return true;
            }
            given_up.extend(nodes.into_iter().map(|node| (role, node)));
        }
        if !given_up.is_empty() {
            self.give_up_seats(name, id, by_state, given_up);
        }
        false
    }

    /// A gang that can do without them gives these seats up, and may have others instead.
    fn give_up_seats(
        &mut self,
        name: &Arc<str>,
        id: GangId,
        by_state: &PodsByState,
        mut given_up: Vec<(u16, Arc<str>)>,
    ) {
        let gang = self.world.gang(id).expect("followed");
        let record = self.gangs.get(name).expect("followed");
        if !by_state.bound.iter().all(|(key, _)| record.pod_roles.contains_key(key)) {
            return;
        }
        let Seats { open, barred, .. } = self.seats(record, gang, by_state);
        let mut sitting = self.occupied_seats(record, &by_state.bound);
        for (role, mut left) in open {
            for node in barred.get(&role).into_iter().flatten() {
                match given_up.iter().position(|one| *one == (role, node.clone())) {
                    Some(at) => drop(given_up.swap_remove(at)),
                    None => left.push(node.clone()),
                }
            }
            self.add_seats(&mut sitting, role, &left);
        }
        self.replace_seats(name, id, sitting);
    }

    /// Members that are done leave their seats for good, unless somebody is there to take them, and so do those that are
    /// given up. Those that failed otherwise, or were removed, keep theirs: who made them makes others.
    pub(crate) fn release_finished_seats(
        &mut self,
        name: &Arc<str>,
        id: GangId,
        by_state: &PodsByState,
    ) {
        let gang = self.world.gang(id).expect("followed");
        let record = self.gangs.get(name).expect("followed");
        let pods = record.pods.iter().filter_map(|key| self.cache.pods.get(key));
        let is_done = |pod: &Pod| pod.has_succeeded() || self.failed_index_of(pod).is_some();
        let done: Vec<&Arc<Pod>> = pods.filter(|pod| is_done(pod)).collect();
        // Who ends well because it was told to end may be made again.
        let is_sure = !done.is_empty() && !done.iter().any(|pod| pod.is_leaving());
        let is_known = by_state.bound.iter().all(|(key, _)| record.pod_roles.contains_key(key));
        // Seats are kept for those who are yet to come.
        let is_awaited = record.missing_members > 0 && self.may_have_missing_members(record);
        let is_still = gang.resize.is_none() && !record.role_sizes.is_empty() && !is_awaited;
        if !is_sure
            || !is_known
            || !is_still
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
    pub(crate) fn add_seats(&self, sitting: &mut Vec<Sitting>, role: u16, nodes: &[Arc<str>]) {
        for node in nodes.iter().filter_map(|node| self.world.node_named(node)) {
            match sitting.iter_mut().find(|one| one.role == role && one.node == node) {
                Some(one) => one.members += 1,
                None => sitting.push(Sitting { role, node, members: 1 }),
            }
        }
    }

    /// A gang goes on with these seats. What is written down must not promise the others to it.
    fn replace_seats(&mut self, name: &Arc<str>, id: GangId, sitting: Vec<Sitting>) {
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
