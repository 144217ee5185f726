//! Nodes: observed, changed, used and removed.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::capacity::signature::Signature;
use crate::capacity::state::NodeState;
use crate::hardware::constraint::{Labels, Taint};
use crate::hardware::device::{GpuKind, MAX_DEVICES};
use crate::hardware::resource::NamedAmounts;
use crate::id::{ClassIdx, GangId, NodeIdx, SigIdx};
use crate::messages::event::Refusal;
use crate::objects::gang::{Gang, Phase, Seat, members_of};
use crate::objects::node::{Node, NodeShape, NodeSpec};
use crate::objects::order::{ClaimFailure, ClaimState, Order};
use crate::world::state::{NodeRow, World};

impl World {
    pub(super) fn update_node(&mut self, spec: &NodeSpec) -> Result<(), Refusal> {
        if usize::from(spec.gpus) > MAX_DEVICES {
            return Err(Refusal::TooManyDevices(spec.name.clone()));
        }
        if let Some(claim) = spec.claim
            && !self.claims.contains_key(&claim)
        {
            return Err(Refusal::UnknownClaim(claim));
        }
        let class = self.class_of(
            &spec.labels,
            &spec.taints,
            &spec.allocatable,
            spec.gpu.as_ref(),
            spec.gpus,
        );
        let leaf = self.topology.leaf_for(&spec.labels);
        self.cover_topology();
        let usable = spec.ready && spec.claim.is_none_or(|claim| self.is_good(claim, spec));
        let idx = match self.node_by_name.get(&spec.name).copied() {
            Some(idx) => {
                self.unindex(idx);
                idx
            }
            None => self.add_node(spec, class),
        };
        self.change_class(idx, class);
        let now = self.now;
        let row = self.row_mut(idx);
        row.node.leaf = leaf;
        row.node.usable = usable;
        row.node.claim = spec.claim.or(row.node.claim);
        if std::mem::replace(&mut row.node.others, spec.others) && !row.node.is_used() {
            row.node.idle_since = now;
        }
        self.index(idx);
        self.give_devices(idx);
        self.apply_quarantine(idx);
        if let Some(claim) = spec.claim {
            self.claim_has_node(claim, idx, usable);
        }
        Ok(())
    }

    pub(super) fn remove_node(&mut self, name: &Arc<str>) -> Result<(), Refusal> {
        let Some(idx) = self.node_by_name.remove(name) else {
            return Err(Refusal::UnknownNode(name.clone()));
        };
        self.unindex(idx);
        self.strike(idx);
        self.forget_quarantine(idx);
        let row = self.row_mut(idx);
        row.gone = true;
        row.node.usable = false;
        // A claim whose machine has joined under another name since has that node, and not this.
        if let Some(claim) = row.node.claim
            && let Some(claim) = self.claims.get_mut(&claim)
            && claim.joined == Some(idx)
        {
            if !matches!(claim.state, ClaimState::Stopping | ClaimState::Stopped) {
                claim.state = ClaimState::Failed(ClaimFailure::Vanished);
                claim.since = self.now;
            }
            claim.joined = None;
        }
        let runs = |world: &Self, gang: GangId| world.gang(gang).is_some_and(|g| !g.is_pending());
        for (gang, _) in self.row(idx).gangs.clone() {
            if runs(self, gang) {
                self.broken.entry(gang).or_insert(idx);
            }
        }
        self.forget_if_unused(idx);
        Ok(())
    }

    /// The class of nodes with this shape, created when it is first seen.
    pub(super) fn class_of(
        &mut self,
        labels: &Labels,
        taints: &[Taint],
        allocatable: &NamedAmounts,
        gpu: Option<&GpuKind>,
        gpus: u16,
    ) -> ClassIdx {
        let levels = self.topology.levels();
        let labels = labels.iter().filter(|(key, _)| !levels.is_place(key));
        let mut taints = taints.to_vec();
        taints.sort_unstable();
        let shape = NodeShape {
            labels: labels.map(|(key, value)| (key.clone(), value.clone())).collect(),
            taints,
            allocatable: self.names.amounts(allocatable),
            gpu: gpu.cloned(),
            gpus,
        };
        if let Some(class) = self.class_by_shape.get(&shape) {
            return *class;
        }
        let class = self.classes.push(shape.clone());
        self.class_by_shape.insert(shape, class);
        class
    }

    /// Takes these seats for a gang. The caller has checked that they are free.
    pub(super) fn sit(&mut self, gang: GangId, seats: &[Seat]) {
        for on_node in seats.chunk_by(|a, b| a.node == b.node) {
            let node = on_node[0].node;
            self.change_state(node, gang, NodeState::sit, on_node);
            self.take_seats(node, gang, members_of(on_node));
        }
    }

    /// Records the seats of a gang on a node.
    pub(super) fn take_seats(&mut self, node: NodeIdx, gang: GangId, members: u32) {
        let row = self.row_mut(node);
        row.node.seats += members;
        match row.gangs.iter_mut().find(|(id, _)| *id == gang) {
            Some((_, known)) => *known += members,
            None => row.gangs.push((gang, members)),
        }
    }

    /// Frees these seats of a gang, also on nodes that are gone.
    pub(super) fn rise(&mut self, gang: GangId, seats: &[Seat]) {
        // Seats of one node may come in several runs, and a recount counts all of them at once.
        let cramped: SmallVec<[NodeIdx; 4]> =
            seats.iter().map(|seat| seat.node).filter(|node| self.row(*node).cramped).collect();
        for on_node in seats.chunk_by(|a, b| a.node == b.node) {
            let node = on_node[0].node;
            if cramped.contains(&node) {
                self.recount(node);
            } else if !self.row(node).gone {
                self.change_state(node, gang, NodeState::rise, on_node);
            }
            let now = self.now;
            let row = self.row_mut(node);
            row.node.seats -= members_of(on_node);
            let at = row.gangs.iter().position(|(id, _)| *id == gang).expect("it has seats here");
            row.gangs[at].1 -= members_of(on_node);
            if row.gangs[at].1 == 0 {
                row.gangs.remove(at);
            }
            if row.node.seats == 0 {
                row.node.idle_since = now;
                self.forget_if_unused(node);
            }
        }
    }

    /// Whether these seats of a gang are free, all of them together, on usable nodes.
    pub(super) fn are_free(&self, gang: &Gang, seats: &[Seat]) -> bool {
        let mut states: FxHashMap<NodeIdx, NodeState> = FxHashMap::default();
        seats.chunk_by(|a, b| a.node == b.node).all(|on_node| {
            let node = on_node[0].node;
            if self.node(node).is_none_or(|here| !here.takes_more()) {
                return false;
            }
            let state =
                states.entry(node).or_insert_with(|| self.states.get(self.row(node).state).clone());
            on_node.iter().all(|seat| {
                let signature = &self.sigs[gang.sigs[usize::from(seat.role)]];
                let free = state.has_free(signature, seat);
                if free {
                    state.sit(signature, seat);
                }
                free
            })
        })
    }

    /// Cordons a node that is being released.
    pub(super) fn cordon_node(&mut self, node: NodeIdx) {
        self.unindex(node);
        self.row_mut(node).node.releasing = true;
        self.index(node);
    }

    /// Closes a node that is not what was requested.
    pub(super) fn close_node(&mut self, node: NodeIdx) {
        self.unindex(node);
        self.row_mut(node).node.usable = false;
        self.index(node);
    }

    fn add_node(&mut self, spec: &NodeSpec, class: ClassIdx) -> NodeIdx {
        let node = Node {
            name: spec.name.clone(),
            class,
            leaf: crate::hardware::topology::ROOT,
            claim: spec.claim,
            usable: false,
            releasing: spec.claim.is_some_and(|claim| {
                let claim = &self.claims[&claim];
                claim.releasing || claim.retiring
            }),
            notice: None,
            quarantined: None,
            seats: 0,
            others: false,
            idle_since: self.now,
        };
        let state = self.states.enter(self.empty_state(class));
        let row = Some(NodeRow {
            node,
            state,
            slot: 0,
            gone: false,
            cramped: false,
            gangs: SmallVec::new(),
        });
        let idx = match self.vacant_nodes.pop() {
            Some(idx) => {
                self.nodes[idx] = row;
                idx
            }
            None => self.nodes.push(row),
        };
        self.node_by_name.insert(spec.name.clone(), idx);
        idx
    }

    /// Adds a node to the indexes of its place.
    pub(super) fn index(&mut self, idx: NodeIdx) {
        let row = self.row(idx);
        let (leaf, class, state) = (row.node.leaf, row.node.class, row.state);
        let placeable = row.node.takes_more();
        let slot = self.capacity.assign_slot(leaf, idx);
        self.row_mut(idx).slot = slot;
        if placeable {
            self.capacity.insert(&self.topology, leaf, slot, state);
            let shape = &self.classes[class];
            self.total.add(&shape.allocatable, shape.gpu_milli(), 1);
        }
        let node = &self.row(idx).node;
        if node.stays() && node.claim.is_none() {
            for domain in self.topology.path(leaf) {
                self.standing[domain].add(class, 1);
            }
        }
    }

    /// Removes a node from the indexes of its place.
    pub(super) fn unindex(&mut self, idx: NodeIdx) {
        let row = self.row(idx);
        let (leaf, class, state, slot) = (row.node.leaf, row.node.class, row.state, row.slot);
        let placeable = row.node.takes_more();
        let stands = row.node.stays() && row.node.claim.is_none();
        if placeable {
            self.capacity.remove(&self.topology, leaf, slot, state);
            let shape = &self.classes[class];
            self.total.take(&shape.allocatable, shape.gpu_milli(), 1);
        }
        if stands {
            for domain in self.topology.path(leaf) {
                self.standing[domain].remove(class, 1);
            }
        }
        self.capacity.free_slot(leaf, slot);
    }

    /// Changes the class of a node that is in no index, keeping what its members use.
    fn change_class(&mut self, idx: NodeIdx, class: ClassIdx) {
        if self.row(idx).node.class == class {
            return;
        }
        let (state, cramped) = self.free_on(idx, class);
        let old = self.row(idx).state;
        let new = self.states.enter(state);
        self.states.leave(old);
        let row = self.row_mut(idx);
        row.state = new;
        row.cramped = cramped;
        row.node.class = class;
    }

    /// What is free on a node if it were of this class, and whether it is too small for its members.
    fn free_on(&self, idx: NodeIdx, class: ClassIdx) -> (NodeState, bool) {
        self.free_after(class, &self.seats_on(idx))
    }

    /// What these seats leave free on a node of this class, and whether it is too small for them.
    fn free_after(&self, class: ClassIdx, seats: &[(SigIdx, Seat)]) -> (NodeState, bool) {
        let mut state = self.empty_state(class);
        let mut cramped = false;
        for (sig, seat) in seats {
            let signature = &self.sigs[*sig];
            let members = u32::from(seat.members);
            // A node that shrank under its members has nothing free; it is never counted below zero.
            if state.free.times_fits(&signature.key.amounts) >= members {
                state.free.take(&signature.key.amounts, members);
            } else {
                state.free = crate::hardware::resource::Amounts::default();
                cramped = true;
            }
            cramped |= !state.devices.take_available(seat.devices, signature.gpu().1);
        }
        (state, cramped)
    }

    /// Whether a node is too small for its members and for the seats an order holds. Seats that other orders hold
    /// until a victim has left do not count yet.
    pub fn is_too_small(&self, idx: NodeIdx, order: &Order) -> bool {
        if !self.is_overcommitted(idx) {
            return false;
        }
        let waits = |other: &&Order| other.spec.id != order.spec.id && !other.after.is_empty();
        let mut theirs = Vec::new();
        for other in self.orders.values().filter(waits) {
            let sigs = &self.gang(other.spec.gang).expect("it has an order").sigs;
            let held = other.held.iter().filter(|seat| seat.node == idx);
            theirs.extend(held.map(|seat| (sigs[usize::from(seat.role)], *seat)));
        }
        let seats = self.seats_without(idx, &theirs);
        self.free_after(self.row(idx).node.class, &seats).1
    }

    /// Recounts what is free on an overcommitted node, when some of its members have left.
    pub(super) fn recount(&mut self, idx: NodeIdx) {
        if self.row(idx).gone {
            return;
        }
        let (state, cramped) = self.free_on(idx, self.row(idx).node.class);
        self.unindex(idx);
        let old = self.row(idx).state;
        let new = self.states.enter(state);
        self.states.leave(old);
        let row = self.row_mut(idx);
        (row.state, row.cramped) = (new, cramped);
        self.index(idx);
    }

    /// Changes what is free on a node by several seats of a gang at once.
    fn change_state(
        &mut self,
        idx: NodeIdx,
        gang: GangId,
        change: impl Fn(&mut NodeState, &Signature, &Seat),
        seats: &[Seat],
    ) {
        let row = self.row(idx);
        let (old, leaf, slot) = (row.state, row.node.leaf, row.slot);
        let listed = row.node.takes_more();
        let mut state = self.states.get(old).clone();
        let sigs = &self.gang(gang).expect("a gang that is not over").sigs;
        for seat in seats {
            change(&mut state, &self.sigs[sigs[usize::from(seat.role)]], seat);
        }
        let new = self.states.enter(state);
        if listed {
            self.capacity.remove(&self.topology, leaf, slot, old);
            self.capacity.insert(&self.topology, leaf, slot, new);
        }
        self.states.leave(old);
        self.row_mut(idx).state = new;
    }

    /// Forgets a node that is gone and no longer referred to.
    fn forget_if_unused(&mut self, idx: NodeIdx) {
        let row = self.row(idx);
        if row.gone && row.node.seats == 0 {
            let state = row.state;
            self.states.leave(state);
            self.nodes[idx] = None;
            self.vacant_nodes.push(idx);
        }
    }

    /// Seats taken on a node, by running members and by reservations.
    fn seats_on(&self, node: NodeIdx) -> Vec<(SigIdx, Seat)> {
        let mut seats = Vec::new();
        for (id, _) in &self.row(node).gangs {
            let Some(gang) = self.gang(*id) else { continue };
            let mine = gang.seats.iter().filter(|seat| seat.node == node);
            seats.extend(mine.map(|seat| (gang.sigs[usize::from(seat.role)], *seat)));
            if let Phase::Assembling(order) = gang.phase {
                let held = self.orders[&order].held.iter().filter(|seat| seat.node == node);
                seats.extend(held.map(|seat| (gang.sigs[usize::from(seat.role)], *seat)));
            }
        }
        seats
    }

    /// What would be free on a node without these seats.
    pub(super) fn state_without(&self, node: NodeIdx, gone: &[(SigIdx, Seat)]) -> NodeState {
        self.free_after(self.row(node).node.class, &self.seats_without(node, gone)).0
    }

    /// The seats on a node without these.
    fn seats_without(&self, node: NodeIdx, gone: &[(SigIdx, Seat)]) -> Vec<(SigIdx, Seat)> {
        let mut gone = gone.to_vec();
        let mut seats = self.seats_on(node);
        seats.retain(|seat| match gone.iter().position(|other| other == seat) {
            Some(at) => {
                gone.swap_remove(at);
                false
            }
            None => true,
        });
        seats
    }
}
