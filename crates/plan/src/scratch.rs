//! A scratch overlay over the World: try things, keep them or drop them.
//!
//! Only what is touched is copied. The first write to a place within a [`Trial`] saves what was there, and
//! a trial that is dropped without [`Trial::keep`] puts all of it back. No operation has an undo of its own.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use fixedbitset::FixedBitSet;
use muster_core::World;
use muster_core::capacity::{Groups, Tally};
use muster_core::device::{DeviceSet, Devices};
use muster_core::gang::{Gang, Seat};
use muster_core::id::{
    ClaimId, ClassIdx, DomainIdx, Id, NodeIdx, OfferingRef, PoolIdx, QueueIdx, SigIdx, StateIdx,
};
use muster_core::pool::PoolUsage;
use muster_core::queue::Usage;
use muster_core::resource::Amounts;
use muster_core::signature::Signature;
use muster_core::state::NodeState;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::place::{NodeCounts, SpreadCounts, SpreadGroup, spread_groups};

/// What becomes of a node when members take seats on it.
#[derive(Clone, Debug)]
pub struct Filled {
    /// The state the node is in afterwards.
    pub state: StateIdx,
    /// The devices each of the members gets; empty when they get none.
    pub devices: SmallVec<[DeviceSet; 8]>,
}

/// A node that does not exist yet, opened on paper while an order is drawn up.
#[derive(Clone, Debug)]
pub struct PaperNode {
    /// What would be asked for.
    pub offering: OfferingRef,
    /// The claim that is under way already, if it is.
    pub coming: Option<ClaimId>,
    /// What is still free on it.
    pub state: StateIdx,
}

#[derive(Clone)]
enum Saved {
    Tally(DomainIdx, Option<Tally<StateIdx>>),
    Groups(DomainIdx, Option<Groups>),
    Queue(QueueIdx, Usage),
    User(QueueIdx, Arc<str>, Usage),
    Ghosts(usize),
    Pool(PoolIdx, PoolUsage),
    Offering(OfferingRef, u32),
    NodeCounts(SpreadGroup, Arc<NodeCounts>),
}

/// The World as it would be if what was tried so far were done.
#[derive(Clone)]
pub struct Scratch<'w> {
    /// The World underneath.
    pub world: &'w World,
    tallies: Vec<Option<Tally<StateIdx>>>,
    groups: Vec<Option<Groups>>,
    paper: Vec<PaperNode>,
    /// Nodes that are not here yet, or only in a what-if: their leaves and slots.
    ghosts: Vec<(DomainIdx, u32)>,
    queues: FxHashMap<QueueIdx, Usage>,
    users: FxHashMap<(QueueIdx, Arc<str>), Usage>,
    pools: FxHashMap<PoolIdx, PoolUsage>,
    offerings: FxHashMap<OfferingRef, u32>,

    /// States that only exist on paper, numbered after the World's.
    states: Vec<NodeState>,
    state_by_content: FxHashMap<NodeState, StateIdx>,
    filled: FxHashMap<(StateIdx, SigIdx, u32), Filled>,

    /// Classes kept for gangs further ahead.
    barred: FixedBitSet,
    /// Nodes on which seats were taken that victims have not left: what becomes free there when one more gang leaves
    /// cannot be told from what is free now.
    sat_over: SmallVec<[NodeIdx; 4]>,
    /// Members of spread groups by node, computed on first use.
    spread_counts: Option<SpreadCounts>,

    /// Goes up whenever something may fit that did not, or the other way round.
    version: u64,
    journal: Vec<Saved>,
    /// Per domain, the last trial that saved its tally and its groups.
    stamps: Vec<(u32, u32)>,
    trial: u32,
}

impl std::fmt::Debug for Scratch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scratch").field("paper", &self.paper).finish_non_exhaustive()
    }
}

impl<'w> Scratch<'w> {
    /// An overlay that changes nothing yet.
    pub fn new(world: &'w World) -> Self {
        let domains = world.topology().len();
        Self {
            world,
            tallies: vec![None; domains],
            groups: vec![None; domains],
            paper: Vec::new(),
            ghosts: Vec::new(),
            queues: FxHashMap::default(),
            users: FxHashMap::default(),
            pools: FxHashMap::default(),
            offerings: FxHashMap::default(),
            states: Vec::new(),
            state_by_content: FxHashMap::default(),
            filled: FxHashMap::default(),
            barred: FixedBitSet::with_capacity(world.class_count()),
            sat_over: SmallVec::new(),
            spread_counts: None,
            version: 0,
            journal: Vec::new(),
            stamps: vec![(0, 0); domains],
            trial: 0,
        }
    }

    /// Everything done until the trial is dropped is undone then, unless it is kept.
    pub fn trial(&mut self) -> Trial<'_, 'w> {
        self.trial += 1;
        let mark = (self.journal.len(), self.paper.len());
        Trial { scratch: self, mark, kept: false }
    }

    /// Usable nodes in a domain, by state.
    #[inline]
    pub fn tally(&self, domain: DomainIdx) -> &[(StateIdx, u32)] {
        match &self.tallies[domain.index()] {
            Some(tally) => tally.entries(),
            None => self.world.capacity().tally(domain).entries(),
        }
    }
    /// Slots of a leaf by state.
    pub fn groups(&self, leaf: DomainIdx) -> &Groups {
        self.groups[leaf.index()]
            .as_ref()
            .unwrap_or_else(|| self.world.capacity().leaf(leaf).groups())
    }
    /// One state, of the World or on paper.
    #[inline]
    pub fn state(&self, idx: StateIdx) -> &NodeState {
        match idx.index().checked_sub(self.world.states().len()) {
            None => self.world.states().get(idx),
            Some(beyond) => &self.states[beyond],
        }
    }
    /// As long as this is the same, the same fits.
    pub fn version(&self) -> u64 {
        self.version
    }
    /// Number of states, the World's and those on paper.
    pub fn state_count(&self) -> usize {
        self.world.states().len() + self.states.len()
    }
    /// The number of a state, given out on first sight.
    pub fn intern(&mut self, state: NodeState) -> StateIdx {
        if let Some(idx) =
            self.world.states().find(&state).or_else(|| self.state_by_content.get(&state).copied())
        {
            return idx;
        }
        let idx = StateIdx::from_index(self.state_count());
        self.states.push(state.clone());
        self.state_by_content.insert(state, idx);
        idx
    }

    /// What becomes of a node in `state` when `count` members of `sig` take seats on it.
    ///
    /// # Panics
    /// When that many do not fit.
    pub fn fill(&mut self, state: StateIdx, sig: SigIdx, count: u32) -> Filled {
        if let Some(filled) = self.filled.get(&(state, sig, count)) {
            return filled.clone();
        }
        let world = self.world;
        let mut after = self.state(state).clone();
        let devices = after.fill(world.signature(sig), count);
        let filled = Filled { state: self.intern(after), devices };
        self.filled.insert((state, sig, count), filled.clone());
        filled
    }

    /// Moves nodes of one leaf from one state to another.
    pub fn shift(&mut self, leaf: DomainIdx, slots: &[u32], from: StateIdx, to: StateIdx) {
        if slots.is_empty() || from == to {
            return;
        }
        self.version += 1;
        let world = self.world;
        let groups = self.groups_mut(leaf);
        groups.remove(slots, from);
        groups.insert(slots, to);
        for domain in world.topology().path(leaf) {
            let tally = self.tally_mut(domain);
            tally.remove(from, slots.len() as u32);
            tally.add(to, slots.len() as u32);
        }
    }

    /// A copy of the overlay: changes to it do not affect this one.
    pub fn later(&self) -> Scratch<'w> {
        let mut later = self.clone();
        later.journal.clear();
        later
    }

    /// Adds an empty node of a class. It stays as long as this overlay or the trial in which it was added.
    pub fn appear(&mut self, class: ClassIdx, leaf: DomainIdx) {
        let world = self.world;
        let slot = world.capacity().leaf(leaf).slots() + self.ghosts.len() as u32;
        self.journal.push(Saved::Ghosts(self.ghosts.len()));
        self.ghosts.push((leaf, slot));
        self.version += 1;
        let state = self.intern(world.empty_state(class));
        self.groups_mut(leaf).insert(&[slot], state);
        for domain in world.topology().path(leaf) {
            self.tally_mut(domain).add(state, 1);
        }
    }
    /// Whether there are nodes that are not here yet, or only in a what-if.
    pub(crate) fn has_ghosts(&self) -> bool {
        !self.ghosts.is_empty()
    }
    /// The node in a slot of a leaf.
    pub fn node_in(&self, leaf: DomainIdx, slot: u32) -> NodeIdx {
        let here = self.world.capacity().leaf(leaf);
        match slot.checked_sub(here.slots()) {
            None => here.node(slot),
            Some(ghost) => NodeIdx(u32::MAX - ghost),
        }
    }
    /// All that is free on usable nodes.
    pub fn free(&self) -> Usage {
        let mut free = Usage::default();
        for (state, nodes) in self.tally(muster_core::topology::ROOT) {
            let state = self.state(*state);
            free.add(&state.free, state.devices.free_milli(), *nodes);
        }
        free
    }

    /// What is free on a node that can be used.
    pub fn node_state(&self, node: NodeIdx) -> Option<NodeState> {
        Some(self.state(self.current(node)?.2).clone())
    }
    /// Sets what is free on a node.
    pub fn set_node_state(&mut self, node: NodeIdx, state: NodeState) {
        if let Some((leaf, slot, from)) = self.current(node) {
            let to = self.intern(state);
            self.shift(leaf, &[slot], from, to);
        }
    }
    /// Takes seats that are free.
    pub fn sit(&mut self, gang: &Gang, seats: &[Seat]) {
        self.change(gang, seats, NodeState::sit);
        self.count_spread(gang, seats);
    }
    /// Frees seats; on nodes that cannot be used, or are too small for the members on them, nothing changes.
    pub fn rise(&mut self, gang: &Gang, seats: &[Seat]) {
        self.uncount_spread(gang, seats);
        if seats.iter().any(|seat| self.is_overcommitted(seat.node)) {
            let there = |seat: &Seat| !self.is_overcommitted(seat.node);
            let seats: Vec<Seat> = seats.iter().copied().filter(there).collect();
            return self.change(gang, &seats, NodeState::rise);
        }
        self.change(gang, seats, NodeState::rise);
    }

    /// Takes seats that victims have not left yet: of what is free there only what the victims leave over stays free.
    pub fn sit_over(&mut self, gang: &Gang, seats: &[Seat]) {
        self.change(gang, seats, NodeState::sit_over);
        self.count_spread(gang, seats);
        self.sat_over.extend(seats.iter().map(|seat| seat.node));
        self.sat_over.sort_unstable();
        self.sat_over.dedup();
    }
    /// Takes seats that were found free at another time. Where seats of victims were taken over since, nothing is
    /// known to become free, so as much as is there is taken. The same where predictions for gangs that last for no
    /// time at all, or for ages, do not agree.
    pub fn sit_as_booked(&mut self, gang: &Gang, seats: &[Seat]) {
        let on_nodes = seats.chunk_by(|a, b| a.node == b.node);
        let taken = on_nodes.filter(|on_node| !self.has_all(gang, on_node)).map(|on| on[0].node);
        let taken: SmallVec<[NodeIdx; 4]> = taken.collect();
        let is_over = |seat: &Seat| self.is_overcommitted(seat.node) || taken.contains(&seat.node);
        if !seats.iter().any(is_over) {
            return self.sit(gang, seats);
        }
        let (over, free): (Vec<Seat>, Vec<Seat>) = seats.iter().copied().partition(is_over);
        self.sit(gang, &free);
        self.change(gang, &over, NodeState::sit_over);
        self.count_spread(gang, &over);
    }
    /// Whether all of these seats on one node are free together; true where the node cannot be used.
    fn has_all(&self, gang: &Gang, on_node: &[Seat]) -> bool {
        let sig = |seat: &Seat| self.world.signature(gang.sigs[usize::from(seat.role)]);
        let state = self.node_state(on_node[0].node);
        state.is_none_or(|state| state.has_free_all(on_node, sig))
    }
    /// Whether a node is too small for all members on it, or assigned to it.
    pub fn is_overcommitted(&self, node: NodeIdx) -> bool {
        self.world.is_overcommitted(node) || self.sat_over.binary_search(&node).is_ok()
    }

    /// Frees the seats of several gangs at once; the same as one after the other, with each node changed once.
    pub fn rise_all(&mut self, leaving: &[(&Gang, &[Seat])]) {
        let world = self.world;
        let mut seats: Vec<(NodeIdx, SigIdx, &Seat)> = Vec::new();
        for (gang, mine) in leaving {
            self.uncount_spread(gang, mine);
            let here = mine.iter().filter(|seat| !self.is_overcommitted(seat.node));
            seats.extend(here.map(|seat| (seat.node, gang.sigs[usize::from(seat.role)], seat)));
        }
        seats.sort_by_key(|(node, ..)| *node);
        for on_node in seats.chunk_by(|a, b| a.0 == b.0) {
            let Some((leaf, slot, from)) = self.current(on_node[0].0) else { continue };
            let mut state = self.state(from).clone();
            for (_, sig, seat) in on_node {
                state.rise(world.signature(*sig), seat);
            }
            let to = self.intern(state);
            self.shift(leaf, &[slot], from, to);
        }
    }

    fn change(
        &mut self,
        gang: &Gang,
        seats: &[Seat],
        change: fn(&mut NodeState, &Signature, &Seat),
    ) {
        let world = self.world;
        for on_node in seats.chunk_by(|a, b| a.node == b.node) {
            let Some((leaf, slot, from)) = self.current(on_node[0].node) else { continue };
            let mut state = self.state(from).clone();
            for seat in on_node {
                change(&mut state, world.signature(gang.sigs[usize::from(seat.role)]), seat);
            }
            let to = self.intern(state);
            self.shift(leaf, &[slot], from, to);
        }
    }

    /// The number of a spread group, by its name.
    pub(crate) fn group(&mut self, among: &Arc<str>) -> SpreadGroup {
        let world = self.world;
        self.spread_counts.get_or_insert_with(|| SpreadCounts::of(world)).group(among)
    }
    /// The members of a spread group on each node.
    pub(crate) fn node_counts(&self, group: SpreadGroup) -> &NodeCounts {
        self.spread_counts.as_ref().expect("a group was numbered").get(group)
    }
    /// Counts members that took seats in their spread groups.
    pub(crate) fn count_spread(&mut self, gang: &Gang, seats: &[Seat]) {
        self.change_spread(gang, seats, |there, members| there + members);
    }
    fn uncount_spread(&mut self, gang: &Gang, seats: &[Seat]) {
        self.change_spread(gang, seats, u32::saturating_sub);
    }
    fn change_spread(&mut self, gang: &Gang, seats: &[Seat], count: fn(u32, u32) -> u32) {
        let world = self.world;
        for (at, role) in gang.spec.roles.iter().enumerate() {
            for among in spread_groups(role) {
                let group = self.group(among);
                let spread_counts = self.spread_counts.as_mut().expect("just numbered");
                self.journal.push(Saved::NodeCounts(group, spread_counts.saved(group)));
                for seat in seats.iter().filter(|seat| usize::from(seat.role) == at) {
                    if let Some(node) = world.node(seat.node) {
                        spread_counts.count(group, node.leaf, seat, count);
                    }
                }
            }
        }
    }

    /// The leaf, slot and state of a usable node.
    pub(crate) fn current(&self, node: NodeIdx) -> Option<(DomainIdx, u32, StateIdx)> {
        let ghost = (u32::MAX - node.0) as usize;
        if let Some((leaf, slot)) = self.ghosts.get(ghost).copied() {
            return Some((leaf, slot, self.groups(leaf).state_of(slot)?));
        }
        let leaf = self.world.node(node).filter(|here| here.takes_more())?.leaf;
        let slot = self.world.node_slot(node)?;
        let state = match &self.groups[leaf.index()] {
            Some(groups) => groups.state_of(slot)?,
            None => self.world.node_state(node)?,
        };
        Some((leaf, slot, state))
    }

    /// Leaves nothing free on a node.
    pub fn close(&mut self, node: NodeIdx) {
        let Some((leaf, slot, from)) = self.current(node) else { return };
        let class = self.state(from).class;
        let (devices, free) = (Devices::free(0), Amounts::default());
        let full = self.intern(NodeState { class, devices, free });
        self.shift(leaf, &[slot], from, full);
    }

    /// Opens a node that does not exist yet and counts it in its pool.
    pub fn open_paper(&mut self, offering: OfferingRef) -> usize {
        let listed = self.world.offering(offering);
        let state = self.intern(self.world.empty_state(listed.class));
        let mut usage = self.pool_usage(offering.pool);
        self.journal.push(Saved::Pool(offering.pool, usage));
        usage.nodes += 1;
        usage.gpus += u32::from(listed.spec.gpus);
        usage.hourly += listed.spec.price;
        self.pools.insert(offering.pool, usage);
        let nodes = self.offering_nodes(offering);
        self.journal.push(Saved::Offering(offering, nodes));
        self.offerings.insert(offering, nodes + 1);
        self.paper.push(PaperNode { offering, coming: None, state });
        self.paper.len() - 1
    }
    /// Opens the node that a claim under way will become; its pool counts it already.
    pub fn open_coming(&mut self, claim: ClaimId, offering: OfferingRef) -> usize {
        let class = self.world.offering(offering).class;
        let state = self.intern(self.world.empty_state(class));
        self.paper.push(PaperNode { offering, coming: Some(claim), state });
        self.paper.len() - 1
    }
    /// Nodes opened on paper since `mark` of them were.
    pub fn paper(&self) -> &[PaperNode] {
        &self.paper
    }
    /// Changes what is free on a node opened on paper. Only for nodes opened in the running trial.
    pub fn set_paper(&mut self, index: usize, state: StateIdx) {
        self.paper[index].state = state;
    }
    /// How many more nodes of an offering fit under every limit.
    pub fn room(&self, offering: OfferingRef) -> u32 {
        let usage = self.pool_usage(offering.pool);
        let pool = &self.world.pools()[offering.pool];
        pool.room_beside(usize::from(offering.slot), &usage, self.offering_nodes(offering))
    }

    /// What a queue and everything below it holds.
    pub fn queue_usage(&self, queue: QueueIdx) -> &Usage {
        self.queues.get(&queue).unwrap_or_else(|| &self.world.queue(queue).usage)
    }
    /// What a user holds of a queue that has a limit for users.
    pub fn user_usage(&self, queue: QueueIdx, user: &Arc<str>) -> Usage {
        let touched = self.users.get(&(queue, user.clone()));
        let held = touched.or_else(|| self.world.queue(queue).users.get(user));
        held.cloned().unwrap_or_default()
    }
    /// Counts members of a gang in its queue and everything above it.
    pub fn charge(&mut self, gang: &Gang, sig: SigIdx, count: u32) {
        self.count(gang, sig, count, Usage::add);
    }
    /// Removes members of a gang from the usage of its queue and everything above it.
    pub fn refund(&mut self, gang: &Gang, sig: SigIdx, count: u32) {
        self.count(gang, sig, count, Usage::take);
    }

    fn count(
        &mut self,
        gang: &Gang,
        sig: SigIdx,
        count: u32,
        change: fn(&mut Usage, &Amounts, u64, u32),
    ) {
        let world = self.world;
        let signature = world.signature(sig);
        for queue in world.queue_path(gang.queue) {
            let mut usage = self.queue_usage(queue).clone();
            self.journal.push(Saved::Queue(queue, usage.clone()));
            change(&mut usage, &signature.key.amounts, signature.gpu_milli(), count);
            self.queues.insert(queue, usage);
            if !world.queue(queue).user_limit.is_empty() {
                let user = &gang.spec.user;
                let mut own = self.user_usage(queue, user);
                self.journal.push(Saved::User(queue, user.clone(), own.clone()));
                change(&mut own, &signature.key.amounts, signature.gpu_milli(), count);
                self.users.insert((queue, user.clone()), own);
            }
        }
    }

    /// Keeps a class of nodes for gangs further ahead, until the end of the cycle.
    pub fn bar(&mut self, class: ClassIdx) {
        self.version += 1;
        self.barred.insert(class.index());
    }
    /// Whether a class of nodes is kept for gangs further ahead.
    #[inline]
    pub fn is_barred(&self, class: ClassIdx) -> bool {
        self.barred.contains(class.index())
    }

    /// What of a pool is in use.
    pub fn pool_usage(&self, pool: PoolIdx) -> PoolUsage {
        self.pools.get(&pool).copied().unwrap_or_else(|| self.world.pools()[pool].usage)
    }
    fn offering_nodes(&self, offering: OfferingRef) -> u32 {
        self.offerings
            .get(&offering)
            .copied()
            .unwrap_or_else(|| self.world.offering(offering).nodes)
    }

    fn tally_mut(&mut self, domain: DomainIdx) -> &mut Tally<StateIdx> {
        let world = self.world;
        let at = domain.index();
        if self.stamps[at].0 != self.trial {
            self.stamps[at].0 = self.trial;
            self.journal.push(Saved::Tally(domain, self.tallies[at].clone()));
        }
        self.tallies[at].get_or_insert_with(|| world.capacity().tally(domain).clone())
    }
    fn groups_mut(&mut self, leaf: DomainIdx) -> &mut Groups {
        let world = self.world;
        let at = leaf.index();
        if self.stamps[at].1 != self.trial {
            self.stamps[at].1 = self.trial;
            self.journal.push(Saved::Groups(leaf, self.groups[at].clone()));
        }
        self.groups[at].get_or_insert_with(|| world.capacity().leaf(leaf).groups().clone())
    }

    fn restore(&mut self, (journal, paper): (usize, usize)) {
        self.version += 1;
        while self.journal.len() > journal {
            match self.journal.pop().expect("longer than the mark") {
                Saved::Tally(domain, tally) => self.tallies[domain.index()] = tally,
                Saved::Groups(leaf, groups) => self.groups[leaf.index()] = groups,
                Saved::Queue(queue, usage) => {
                    self.queues.insert(queue, usage);
                }
                Saved::User(queue, user, usage) => {
                    self.users.insert((queue, user), usage);
                }
                Saved::Ghosts(known) => self.ghosts.truncate(known),
                Saved::Pool(pool, usage) => {
                    self.pools.insert(pool, usage);
                }
                Saved::Offering(offering, nodes) => {
                    self.offerings.insert(offering, nodes);
                }
                Saved::NodeCounts(group, before) => {
                    self.spread_counts.as_mut().expect("it was counted").restore(group, before);
                }
            }
        }
        self.paper.truncate(paper);
    }
}

/// Changes to a [`Scratch`] that are undone when this is dropped, unless kept.
#[derive(Debug)]
pub struct Trial<'s, 'w> {
    scratch: &'s mut Scratch<'w>,
    mark: (usize, usize),
    kept: bool,
}

impl Trial<'_, '_> {
    /// Makes the changes part of the trial around this one, or of the overlay.
    pub fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Trial<'_, '_> {
    fn drop(&mut self) {
        if !self.kept {
            self.scratch.restore(self.mark);
        }
        // Later writes belong to another trial, also when that is the one around this.
        self.scratch.trial += 1;
    }
}

impl<'w> Deref for Trial<'_, 'w> {
    type Target = Scratch<'w>;
    fn deref(&self) -> &Scratch<'w> {
        self.scratch
    }
}

impl<'w> DerefMut for Trial<'_, 'w> {
    fn deref_mut(&mut self) -> &mut Scratch<'w> {
        self.scratch
    }
}
