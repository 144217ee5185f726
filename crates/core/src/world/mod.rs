//! The World: everything observed and everything decided but not yet confirmed.
//!
//! It changes only by [`World::apply`], one event at a time, and keeps its indexes as it goes. An event that
//! does not fit is refused and leaves the World exactly as it was. Nothing here decides anything.

mod apply;
mod claims;
mod found;
mod found_order;
mod gangs;
mod nodes;
mod orders;
mod remember;
mod resize;
mod seats;
mod supply;
mod trust;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::baseline::Baseline;
use crate::capacity::{Capacity, Tally};
use crate::gang::Gang;
use crate::history::History;
use crate::id::{
    ClaimId, ClassIdx, DomainIdx, GangId, IndexVec, NodeIdx, OfferingRef, OrderId, PoolIdx,
    QueueIdx, SigIdx, StateIdx,
};
use crate::line::{Line, Waiter};
use crate::node::{Node, NodeShape};
use crate::order::{Claim, Order};
use crate::pool::{Offering, Pool};
use crate::queue::{Queue, Usage};
use crate::resource::ResourceNames;
use crate::shapes::Shapes;
use crate::signature::{Signature, SignatureKey};
use crate::state::{NodeState, StateTable};
use crate::time::{Span, Time};
use crate::topology::{Levels, Topology};
use trust::Strikes;

/// A node's row: the node, its state, and its slot in its leaf.
#[derive(Clone, Debug)]
struct NodeRow {
    node: Node,
    state: StateIdx,
    slot: u32,
    /// The node itself is gone, but members that were on it have not been stopped yet.
    gone: bool,
    /// It is too small for those on it and those who come after them; what is free is counted anew when one of
    /// them leaves.
    cramped: bool,
    /// Who has seats on it, running or reserved, and for how many members.
    gangs: SmallVec<[(GangId, u32); 2]>,
}

/// Everything observed.
#[derive(Clone, Debug)]
pub struct World {
    now: Time,
    epoch: i64,
    synced: bool,
    names: ResourceNames,
    topology: Topology,

    classes: IndexVec<ClassIdx, NodeShape>,
    class_by_shape: FxHashMap<NodeShape, ClassIdx>,
    sigs: IndexVec<SigIdx, Signature>,
    sig_by_key: FxHashMap<SignatureKey, SigIdx>,
    shapes: Shapes,

    nodes: IndexVec<NodeIdx, Option<NodeRow>>,
    node_by_name: FxHashMap<Arc<str>, NodeIdx>,
    vacant_nodes: Vec<NodeIdx>,
    states: StateTable,
    capacity: Capacity,
    /// Usable nodes that came with the cluster, per class and domain, full or empty.
    standing: IndexVec<DomainIdx, Tally<ClassIdx>>,
    /// What all usable nodes have together, free or not.
    total: Usage,

    queues: IndexVec<QueueIdx, Queue>,
    queue_by_name: FxHashMap<Arc<str>, QueueIdx>,
    /// Whether any queue has a limit, for all or for single users.
    has_limits: bool,
    pools: IndexVec<PoolIdx, Pool>,
    pool_by_name: FxHashMap<Arc<str>, PoolIdx>,

    gangs: IndexVec<GangId, Option<Box<Gang>>>,
    gang_by_name: FxHashMap<Arc<str>, GangId>,
    live: BTreeSet<GangId>,
    pending: BTreeSet<GangId>,
    line: Line,
    /// Gangs that run, by when they end if their submitters are right.
    said_ends: BTreeSet<(Time, GangId)>,
    /// What the submitters of gangs that are not over think they take, and how many think so.
    said: BTreeMap<Span, u32>,
    /// Gangs with a member on a node that is gone, and which node.
    broken: BTreeMap<GangId, NodeIdx>,
    cancelled: BTreeSet<GangId>,
    /// Gangs that wait because a node under them failed.
    repairs: BTreeSet<GangId>,
    /// How many gangs that are not over could ever make way for others.
    disruptable: u32,
    /// Gangs that make way for an order, and for which.
    making_way: BTreeMap<GangId, OrderId>,
    /// Nodes that will be gone, and when.
    noticed: BTreeSet<(Time, NodeIdx)>,
    /// How often nodes have failed under those who used them.
    flaky: BTreeMap<Arc<str>, Strikes>,
    /// Nodes that are not trusted, and until when.
    quarantine: BTreeSet<(Time, NodeIdx)>,

    history: History,
    baseline: Option<Baseline>,

    orders: BTreeMap<OrderId, Order>,
    claims: BTreeMap<ClaimId, Claim>,
    next_order: u32,
    next_claim: u32,
}

impl World {
    /// An empty World whose topology has these levels. The queue `default` is always there.
    pub fn new(levels: Levels) -> Self {
        let topology = Topology::new(levels);
        let mut capacity = Capacity::default();
        capacity.cover(&topology);
        let mut world = Self {
            now: Time::ZERO,
            epoch: 0,
            synced: false,
            names: ResourceNames::default(),
            topology,
            classes: IndexVec::new(),
            class_by_shape: FxHashMap::default(),
            sigs: IndexVec::new(),
            sig_by_key: FxHashMap::default(),
            shapes: Shapes::default(),
            nodes: IndexVec::new(),
            node_by_name: FxHashMap::default(),
            vacant_nodes: Vec::new(),
            states: StateTable::default(),
            capacity,
            standing: IndexVec::new(),
            total: Usage::default(),
            queues: IndexVec::new(),
            queue_by_name: FxHashMap::default(),
            has_limits: false,
            pools: IndexVec::new(),
            pool_by_name: FxHashMap::default(),
            gangs: IndexVec::new(),
            gang_by_name: FxHashMap::default(),
            live: BTreeSet::new(),
            pending: BTreeSet::new(),
            line: Line::default(),
            said_ends: BTreeSet::new(),
            said: BTreeMap::new(),
            broken: BTreeMap::new(),
            cancelled: BTreeSet::new(),
            repairs: BTreeSet::new(),
            disruptable: 0,
            making_way: BTreeMap::new(),
            noticed: BTreeSet::new(),
            flaky: BTreeMap::new(),
            quarantine: BTreeSet::new(),
            history: History::default(),
            baseline: None,
            orders: BTreeMap::new(),
            claims: BTreeMap::new(),
            next_order: 0,
            next_claim: 0,
        };
        world.set_queue(crate::queue::QueueSpec::open(supply::DEFAULT)).expect("the first queue");
        world.cover_topology();
        world
    }

    /// The same, which also keeps the baseline; see [`crate::baseline`].
    pub fn with_baseline(levels: Levels) -> Self {
        Self { baseline: Some(Baseline::default()), ..Self::new(levels) }
    }

    /// The time of the last event.
    pub fn now(&self) -> Time {
        self.now
    }
    /// What Unix time it is at an instant of the host's, in milliseconds.
    pub fn unix_ms(&self, at: Time) -> i64 {
        self.epoch.saturating_add(at.0)
    }
    /// Whether the host has reported everything once.
    pub fn is_synced(&self) -> bool {
        self.synced
    }
    /// Names of resources.
    pub fn names(&self) -> &ResourceNames {
        &self.names
    }
    /// The topology tree.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }
    /// Free capacity, indexed.
    pub fn capacity(&self) -> &Capacity {
        &self.capacity
    }
    /// Node states.
    pub fn states(&self) -> &StateTable {
        &self.states
    }
    /// Usable nodes that came with the cluster, not from a pool, by class, whether or not anything is free.
    pub fn standing(&self, domain: DomainIdx) -> &Tally<ClassIdx> {
        &self.standing[domain]
    }
    /// What a class of nodes looks like.
    pub fn class(&self, class: ClassIdx) -> &NodeShape {
        &self.classes[class]
    }
    /// Number of classes seen so far.
    pub fn class_count(&self) -> usize {
        self.classes.len()
    }
    /// Number of kinds of members seen so far.
    pub fn signature_count(&self) -> usize {
        self.sigs.len()
    }
    /// One kind of member.
    pub fn signature(&self, sig: SigIdx) -> &Signature {
        &self.sigs[sig]
    }
    /// What members were like that were asked for lately.
    pub fn shapes(&self) -> &Shapes {
        &self.shapes
    }
    /// The state of an empty node of a class.
    pub fn empty_state(&self, class: ClassIdx) -> NodeState {
        let shape = &self.classes[class];
        NodeState {
            class,
            devices: crate::device::Devices::free(shape.gpus),
            free: shape.allocatable.clone(),
        }
    }

    /// A node that is here; none once it is gone.
    pub fn node(&self, node: NodeIdx) -> Option<&Node> {
        self.nodes.get(node)?.as_ref().filter(|row| !row.gone).map(|row| &row.node)
    }
    /// The node of this name.
    pub fn node_named(&self, name: &str) -> Option<NodeIdx> {
        self.node_by_name.get(name).copied()
    }
    /// What is free on a node.
    pub fn node_state(&self, node: NodeIdx) -> Option<StateIdx> {
        self.nodes.get(node)?.as_ref().map(|row| row.state)
    }
    /// Whether a node has become too small for those on it.
    pub fn is_cramped(&self, node: NodeIdx) -> bool {
        self.nodes.get(node).and_then(Option::as_ref).is_some_and(|row| row.cramped)
    }
    /// A node's slot in its leaf.
    pub fn node_slot(&self, node: NodeIdx) -> Option<u32> {
        self.nodes.get(node)?.as_ref().map(|row| row.slot)
    }
    /// A name for a node, also for one that is gone but not yet forgotten.
    pub fn node_name(&self, node: NodeIdx) -> Option<&Arc<str>> {
        self.nodes.get(node)?.as_ref().map(|row| &row.node.name)
    }
    /// Nodes that are here.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeIdx, &Node)> {
        let rows = self.nodes.iter().filter_map(|(idx, row)| Some((idx, row.as_ref()?)));
        rows.filter(|(_, row)| !row.gone).map(|(idx, row)| (idx, &row.node))
    }
    /// Upper bound of node slots.
    pub fn node_slots(&self) -> usize {
        self.nodes.len()
    }

    /// A gang that is not over.
    pub fn gang(&self, gang: GangId) -> Option<&Gang> {
        self.gangs.get(gang)?.as_deref()
    }
    /// The gang of this name that is not over.
    pub fn gang_named(&self, name: &str) -> Option<GangId> {
        self.gang_by_name.get(name).copied()
    }
    /// Gangs that are not over, by age.
    pub fn gangs(&self) -> impl Iterator<Item = (GangId, &Gang)> {
        self.live.iter().map(|id| (*id, self.gangs[*id].as_deref().expect("live")))
    }
    /// Gangs that wait, with or without an order, by age.
    pub fn pending(&self) -> &BTreeSet<GangId> {
        &self.pending
    }
    /// Gangs that wait and have no order, highest priority first, then oldest.
    pub fn waiting(&self) -> &[Waiter] {
        self.line.waiters()
    }
    /// Gangs that run, and when they end if their submitters are right, soonest first.
    pub fn said_ends(&self) -> impl DoubleEndedIterator<Item = (Time, GangId)> + '_ {
        self.said_ends.iter().copied()
    }
    /// The longest that any gang that is not over is said to take with its minimum.
    pub fn longest_said(&self) -> Span {
        self.said.last_key_value().map_or(Span::ZERO, |(span, _)| *span)
    }
    /// What all usable nodes have together, free or not.
    pub fn total(&self) -> &Usage {
        &self.total
    }
    /// Gangs with a member on a node that is gone.
    pub fn broken(&self) -> &BTreeMap<GangId, NodeIdx> {
        &self.broken
    }
    /// Gangs that were cancelled and still hold something.
    pub fn cancelled(&self) -> &BTreeSet<GangId> {
        &self.cancelled
    }

    /// Gangs that wait because a node under them failed, by age.
    pub fn repairs(&self) -> &BTreeSet<GangId> {
        &self.repairs
    }
    /// Whether any gang that is not over could ever make way for others.
    pub fn has_disruptable(&self) -> bool {
        self.disruptable > 0
    }
    /// The order for which a gang makes way, wholly or in part, if for any.
    pub fn makes_way_for(&self, gang: GangId) -> Option<OrderId> {
        self.making_way.get(&gang).copied()
    }
    /// Nodes that will be gone, and when, soonest first.
    pub fn noticed(&self) -> impl Iterator<Item = (Time, NodeIdx)> + '_ {
        self.noticed.iter().copied()
    }
    /// When the next node is trusted again.
    pub fn next_trusted(&self) -> Option<Time> {
        self.quarantine.first().map(|(until, _)| *until)
    }
    /// Who has seats on a node, running or reserved, and for how many members.
    pub fn gangs_on(&self, node: NodeIdx) -> &[(GangId, u32)] {
        self.nodes.get(node).and_then(Option::as_ref).map_or(&[], |row| &row.gangs)
    }

    /// How long the gangs of each user really ran.
    pub fn history(&self) -> &History {
        &self.history
    }
    /// The longest wait of the baseline so far. Zero where it is not kept, and where nodes can be bought: a
    /// machine of no fixed size has no baseline.
    pub fn baseline_wait(&self) -> Span {
        let kept = self.baseline.as_ref().filter(|_| self.pools.is_empty());
        kept.map_or(Span::ZERO, Baseline::longest_wait)
    }
    /// A queue.
    pub fn queue(&self, queue: QueueIdx) -> &Queue {
        &self.queues[queue]
    }
    /// All queues.
    pub fn queues(&self) -> &IndexVec<QueueIdx, Queue> {
        &self.queues
    }
    /// Whether any queue has a limit, for all or for single users.
    pub fn has_limits(&self) -> bool {
        self.has_limits
    }
    /// A queue and those above it.
    pub fn queue_path(&self, queue: QueueIdx) -> impl Iterator<Item = QueueIdx> + '_ {
        std::iter::successors(Some(queue), |q| self.queues[*q].parent)
    }
    /// Whether a queue, and everything above it, may have nodes of a pool's tier bought for it.
    pub fn may_buy(&self, queue: QueueIdx, pool: PoolIdx) -> bool {
        let tier = &self.pools[pool].spec.tier;
        self.queue_path(queue).all(|queue| {
            let tiers = &self.queues[queue].spec.tiers;
            tiers.is_empty() || tiers.contains(tier)
        })
    }
    /// All pools.
    pub fn pools(&self) -> &IndexVec<PoolIdx, Pool> {
        &self.pools
    }
    /// The pool of this name.
    pub fn pool_named(&self, name: &str) -> Option<PoolIdx> {
        self.pool_by_name.get(name).copied()
    }
    /// One offering.
    pub fn offering(&self, offering: OfferingRef) -> &Offering {
        &self.pools[offering.pool].offerings[usize::from(offering.slot)]
    }

    /// Orders that assemble.
    pub fn orders(&self) -> &BTreeMap<OrderId, Order> {
        &self.orders
    }
    /// Claims of which something may be left.
    pub fn claims(&self) -> &BTreeMap<ClaimId, Claim> {
        &self.claims
    }
    /// The number the next order gets.
    pub fn next_order(&self) -> OrderId {
        OrderId(self.next_order)
    }
    /// The number the next claim gets.
    pub fn next_claim(&self) -> ClaimId {
        ClaimId(self.next_claim)
    }

    fn row(&self, node: NodeIdx) -> &NodeRow {
        self.nodes[node].as_ref().expect("a node that is not forgotten")
    }
    fn row_mut(&mut self, node: NodeIdx) -> &mut NodeRow {
        self.nodes[node].as_mut().expect("a node that is not forgotten")
    }
    fn gang_mut(&mut self, gang: GangId) -> &mut Gang {
        self.gangs[gang].as_deref_mut().expect("a gang that is not over")
    }
    fn cover_topology(&mut self) {
        self.capacity.cover(&self.topology);
        self.standing.grow(self.topology.len(), Tally::default());
    }
}
