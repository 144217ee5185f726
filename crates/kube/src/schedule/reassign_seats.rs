//! Reassigns the seats of a gang to members that differ from those the gang was sized by.
//!
//! A gang with missing members is sized by the total that its group declares, and holds seats for members that do not exist.
//! The pods that are created may be fewer and larger, or more and smaller. They get capacity on the gang's nodes, pods on
//! nodes stay there, and the seats of members that are still missing are kept as before. Only where that is impossible is the
//! gang planned again, as long as none of its pods runs; once one does, the gang goes on with the members that fit, and the
//! others wait for it to grow.
//!
//! Not here: a search for other nodes. That is the planner's.

use std::sync::Arc;

use muster_core::event::RoleSeats;
use muster_core::gang::{Gang, GangSpec, Phase, RoleSpec};
use muster_core::id::{GangId, NodeIdx};
use muster_core::plan::StopReason;
use muster_core::signature::Signature;
use muster_core::state::NodeState;
use muster_core::{Event, World};
use rustc_hash::FxHashMap;

use crate::cache::store::Key;
use crate::host::Host;
use crate::provision::requests_served::handover::{SingleSeat, seats_by_node};
use crate::schedule::reconcile::have_same_members;

impl Host {
    /// Whether a gang has seats that were reserved for other members than those that were created.
    pub(crate) fn has_seats_for_other_members(&self, name: &str, now: &GangSpec) -> bool {
        let Some(record) = self.gangs.get(name) else { return false };
        let gang = self.world.gang_named(name).and_then(|id| self.world.gang(id));
        gang.is_some_and(|gang| {
            let has_seats = matches!(gang.phase, Phase::Admitted { .. } | Phase::Running { .. });
            let others = || self.comes_in_stages(record) && !have_same_members(&gang.spec, now);
            has_seats
                && gang.resize.is_none()
                && (record.members_requested_at.is_some() || others())
        })
    }

    /// Gives the seats of a gang to the members that were created.
    pub(crate) fn reassign_seats_to_members(&mut self, name: &Arc<str>, spec: GangSpec) {
        let id = self.world.gang_named(name).expect("the World has the gang");
        let gang = self.world.gang(id).expect("the World has the gang");
        let record = self.gangs.get(name).expect("the gang has a record");
        let bound = self.pods_by_state(record).bound;
        let here = self.occupied_spots(name, &bound);
        let mut nodes: Vec<NodeIdx> = gang.seats.iter().map(|seat| seat.node).collect();
        nodes.dedup();
        let room = room(&self.world, gang, &spec, &nodes, &here);
        let all = room.is_for_all(&spec);
        if !all && here.is_empty() {
            return self.replan_with_actual_members(name, id, spec);
        }
        let (with, sitting) = room.settled(&spec);
        if !self.apply_event(&Event::GangTurnedOut { spec: with, sitting }) {
            if here.is_empty() {
                self.replan_with_actual_members(name, id, spec);
            } else {
                self.map_roles_to_seats(name, &spec);
            }
            return;
        }
        tracing::debug!(
            gang = &**name,
            all,
            "its members have the seats that were reserved for them"
        );
        self.map_roles_to_seats(name, &spec);
        let record = self.gangs.get_mut(name).expect("the gang has a record");
        if !all {
            record.wait_reason.get_or_insert_with(|| NO_ROOM.to_owned());
        }
        (record.placement_written, record.members_requested_at, record.submitted_spec) =
            (false, None, Some(spec));
        self.write_placement(name, id);
    }

    /// The role and node of each bound member.
    fn occupied_spots(&self, name: &str, bound: &[(Key, Arc<str>)]) -> Vec<SingleSeat> {
        let Some(record) = self.gangs.get(name) else { return Vec::new() };
        let spot = |(key, node): &(Key, Arc<str>)| {
            Some((*record.pod_roles.get(key)?, self.world.node_named(node)?))
        };
        bound.iter().filter_map(spot).collect()
    }

    /// Plans a gang again whose members differ from what its group declared and do not fit on its seats, with its real members
    /// and in its old place in the queue.
    fn replan_with_actual_members(&mut self, name: &Arc<str>, id: GangId, spec: GangSpec) {
        tracing::info!(gang = &**name, "its members are other than its group declared");
        if !self.stop_gang(id, StopReason::Moved) {
            return;
        }
        for event in [Event::GangStopped(id), Event::GangChanged(spec.clone())] {
            if !self.apply_event(&event) {
                return;
            }
        }
        let record = self.gangs.get_mut(name).expect("the gang has a record");
        (record.placement_written, record.members_requested_at, record.submitted_spec) =
            (false, None, Some(spec));
        self.clear_placement(name);
    }

    /// The seats of a staged gang on the nodes of its recorded placement, after a rebuild: it may have other members since, which
    /// are not recorded. Also its spec without the members that do not fit. `None` where the recorded placement holds.
    pub(crate) fn restored_seats(
        &self,
        name: &str,
        id: GangId,
    ) -> Option<(GangSpec, Vec<RoleSeats>)> {
        let record = self.gangs.get(name).filter(|record| self.may_have_missing_members(record))?;
        let gang = self.world.gang(id)?;
        let mut nodes = self.recorded_nodes(name);
        let here = self.occupied_spots(name, &self.pods_by_state(record).bound);
        nodes.extend(here.iter().map(|(_, node)| *node));
        nodes.sort_unstable();
        nodes.dedup();
        if nodes.is_empty() || self.is_recorded_whole(name, gang) {
            return None;
        }
        let room = room(&self.world, gang, &gang.spec, &nodes, &here);
        (room.is_for_all(&gang.spec) || !here.is_empty()).then(|| room.settled(&gang.spec))
    }

    fn recorded_nodes(&self, name: &str) -> Vec<NodeIdx> {
        let placement =
            self.gang_object(name).map(|object| crate::schedule::placement::placement_of(object));
        let placement = placement.unwrap_or_default();
        placement.iter().filter_map(|one| self.world.node_named(&one.node)).collect()
    }

    /// Whether the recorded placement is for the members that a gang has.
    fn is_recorded_whole(&self, name: &str, gang: &Gang) -> bool {
        self.recorded_seats(name).is_some_and(|sitting| {
            gang.spec.roles.iter().enumerate().all(|(at, role)| {
                let mine = sitting.iter().filter(|one| usize::from(one.role) == at);
                (role.min..=role.max).contains(&mine.map(|one| u32::from(one.members)).sum())
            })
        })
    }
}

const NO_ROOM: &str = "some of its members do not fit on its seats, and wait for capacity";

/// Capacity found for members of a gang: one spot for each that fits.
struct FoundRoom {
    spots: Vec<SingleSeat>,
}

impl FoundRoom {
    fn in_role(&self, at: usize) -> u32 {
        self.spots.iter().filter(|(role, _)| usize::from(*role) == at).count() as u32
    }

    fn is_for_all(&self, spec: &GangSpec) -> bool {
        spec.roles.iter().enumerate().all(|(at, role)| self.in_role(at) >= role.min)
    }

    /// The gang with the members that fit, and their seats.
    fn settled(&self, spec: &GangSpec) -> (GangSpec, Vec<RoleSeats>) {
        let (mut with, mut places) = (spec.clone(), FxHashMap::default());
        with.roles.clear();
        for (at, role) in spec.roles.iter().enumerate() {
            let seated = self.in_role(at);
            if seated > 0 {
                places.insert(at as u16, with.roles.len() as u16);
                let (min, max) = (role.min.min(seated), role.max.max(seated));
                with.roles.push(RoleSpec { min, max, ..role.clone() });
            }
        }
        let spots: Vec<SingleSeat> =
            self.spots.iter().map(|(of, node)| (places[of], *node)).collect();
        (with, seats_by_node(&spots))
    }
}

/// Capacity for the minimum of every role on these nodes: what the gang has there and what is free. Pods on nodes stay; then
/// the largest members are placed first, since small ones fit beside them.
fn room(
    world: &World,
    gang: &Gang,
    spec: &GangSpec,
    nodes: &[NodeIdx],
    here: &[SingleSeat],
) -> FoundRoom {
    let kinds = world.kinds_of(&spec.roles);
    let mut states: FxHashMap<NodeIdx, NodeState> = FxHashMap::default();
    for node in nodes.iter().chain(here.iter().map(|(_, node)| node)) {
        let Some(state) = world.node_state(*node) else { continue };
        let mut state = world.states().get(state).clone();
        for seat in gang.seats.iter().filter(|seat| seat.node == *node) {
            state.rise(world.signature(gang.sigs[usize::from(seat.role)]), seat);
        }
        states.insert(*node, state);
    }
    let mut found = FoundRoom { spots: here.to_vec() };
    for (role, node) in here {
        let (kind, state) = (&kinds[usize::from(*role)], states.get_mut(node));
        if let Some(state) = state.filter(|state| kind.times_fits(state) > 0) {
            state.fill(kind, 1);
        }
    }
    let mut order: Vec<usize> = (0..spec.roles.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse((kinds[*at].gpu_milli(), size(&spec.roles[*at]))));
    for at in order {
        for node in nodes {
            let lacks = spec.roles[at].min.saturating_sub(found.in_role(at));
            let Some(state) = states.get_mut(node).filter(|_| suits(world, &kinds[at], *node))
            else {
                continue;
            };
            let more = kinds[at].times_fits(state).min(lacks);
            if more > 0 {
                state.fill(&kinds[at], more);
            }
            found.spots.extend((0..more).map(|_| (at as u16, *node)));
        }
    }
    found
}

/// The sum of all that one member requests, for comparison: CPU in thousandths and memory in bytes do not add up, but a
/// member that requests more of both has the larger sum.
fn size(role: &RoleSpec) -> u64 {
    role.request.amounts.values().copied().fold(0, u64::saturating_add)
}

/// Whether members of this kind may be placed on a node.
fn suits(world: &World, kind: &Signature, node: NodeIdx) -> bool {
    world.node(node).is_some_and(|node| {
        let (shape, topology) = (world.class(node.class), world.topology());
        node.takes_more() && kind.score(shape, topology, node.leaf, Some(&node.name)).is_some()
    })
}
