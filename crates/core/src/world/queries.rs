//! Read-only queries of the World: nodes, gangs, queues, pools, orders and claims.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::capacity::signature::Signature;
use crate::capacity::state::{NodeState, StateTable};
use crate::capacity::{Capacity, Tally};
use crate::hardware::resource::ResourceNames;
use crate::hardware::topology::Topology;
use crate::history::History;
use crate::history::baseline::Baseline;
use crate::history::demand_mix::DemandMix;
use crate::id::{
    ClaimId, ClassIdx, DomainIdx, GangId, IndexVec, NodeIdx, OfferingRef, OrderId, PoolIdx,
    QueueIdx, SigIdx, StateIdx,
};
use crate::objects::gang::Gang;
use crate::objects::node::{Node, NodeShape};
use crate::objects::order::{Claim, Order};
use crate::objects::pool::{Offering, Pool};
use crate::objects::queue::{Queue, Usage};
use crate::units::time::{Span, Time};
use crate::world::World;
use crate::world::wait_queue::Waiter;

impl World {
    /// The time of the last event.
    pub fn now(&self) -> Time {
        self.now
    }
    /// The Unix time of an instant of the host's, in milliseconds.
    pub fn unix_ms(&self, at: Time) -> i64 {
        self.epoch.saturating_add(at.0)
    }
    /// Whether the host has listed everything once.
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
    /// The shape of a class of nodes.
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
    /// The demand mix: kinds of members requested lately.
    pub fn shapes(&self) -> &DemandMix {
        &self.shapes
    }
    /// The state of an empty node of a class.
    pub fn empty_state(&self, class: ClassIdx) -> NodeState {
        let shape = &self.classes[class];
        NodeState {
            class,
            devices: crate::hardware::device::Devices::free(shape.gpus),
            free: shape.allocatable.clone(),
        }
    }

    /// A node that is present; none once it is gone.
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
    /// Whether a node has become too small for its members.
    pub fn is_overcommitted(&self, node: NodeIdx) -> bool {
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
    /// Nodes that are present.
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
        self.wait_queue.waiters()
    }
    /// Running gangs and their estimated ends, soonest first.
    pub fn estimated_ends(&self) -> impl DoubleEndedIterator<Item = (Time, GangId)> + '_ {
        self.estimated_ends.iter().copied()
    }
    /// The longest estimate of any gang that is not over, with its minimum.
    pub fn longest_estimate(&self) -> Span {
        self.estimates.last_key_value().map_or(Span::ZERO, |(span, _)| *span)
    }
    /// The total capacity of all usable nodes, free or not.
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
    /// Whether any gang that is not over could ever give up seats for another.
    pub fn has_possible_victims(&self) -> bool {
        self.disruptable > 0
    }
    /// The order that a gang gives up seats for, all or some.
    pub fn preempted_for(&self, gang: GangId) -> Option<OrderId> {
        self.making_way.get(&gang).copied()
    }
    /// Nodes that will be gone, and when, soonest first.
    pub fn noticed(&self) -> impl Iterator<Item = (Time, NodeIdx)> + '_ {
        self.noticed.iter().copied()
    }
    /// When the next quarantine ends.
    pub fn next_trusted(&self) -> Option<Time> {
        self.quarantine.first().map(|(until, _)| *until)
    }
    /// The gangs with seats on a node, running or reserved, and for how many members.
    pub fn gangs_on(&self, node: NodeIdx) -> &[(GangId, u32)] {
        self.nodes.get(node).and_then(Option::as_ref).map_or(&[], |row| &row.gangs)
    }

    /// How long the gangs of each user ran.
    pub fn history(&self) -> &History {
        &self.history
    }
    /// The longest wait of the baseline so far. Zero where it is not kept, and where nodes can be bought: a machine of
    /// no fixed size has no baseline.
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
    /// A queue and its ancestors.
    pub fn queue_path(&self, queue: QueueIdx) -> impl Iterator<Item = QueueIdx> + '_ {
        std::iter::successors(Some(queue), |q| self.queues[*q].parent)
    }
    /// Whether nodes of a pool's tier may be bought for a queue, by its tiers and those of its ancestors.
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

    /// Orders that are assembling.
    pub fn orders(&self) -> &BTreeMap<OrderId, Order> {
        &self.orders
    }
    /// Claims that are not gone.
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
}
