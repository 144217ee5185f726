//! The fields of the [`World`], and an empty one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::capacity::signature::{Signature, SignatureKey};
use crate::capacity::state::StateTable;
use crate::capacity::{Capacity, Tally};
use crate::hardware::resource::ResourceNames;
use crate::hardware::topology::{Levels, Topology};
use crate::history::History;
use crate::history::baseline::Baseline;
use crate::history::demand_mix::DemandMix;
use crate::id::{
    ClaimId, ClassIdx, DomainIdx, GangId, IndexVec, NodeIdx, OrderId, PoolIdx, QueueIdx, SigIdx,
    StateIdx,
};
use crate::objects::gang::Gang;
use crate::objects::node::{Node, NodeShape};
use crate::objects::order::{Claim, Order};
use crate::objects::pool::Pool;
use crate::objects::queue::{Queue, Usage};
use crate::units::time::{Span, Time};
use crate::world::quarantine::Strikes;
use crate::world::wait_queue::WaitQueue;

/// A node's row: the node, its state, and its slot in its leaf.
#[derive(Clone, Debug)]
pub(super) struct NodeRow {
    pub(super) node: Node,
    pub(super) state: StateIdx,
    pub(super) slot: u32,
    /// The node itself is gone, but members that were on it have not been stopped yet.
    pub(super) gone: bool,
    /// It is too small for its members and for seats reserved after them; what is free is recounted when one of them
    /// leaves.
    pub(super) cramped: bool,
    /// The gangs with seats on it, running or reserved, and for how many members.
    pub(super) gangs: SmallVec<[(GangId, u32); 2]>,
}

/// Everything observed and decided.
#[derive(Clone, Debug)]
pub struct World {
    pub(super) now: Time,
    pub(super) epoch: i64,
    pub(super) synced: bool,
    pub(super) names: ResourceNames,
    pub(super) topology: Topology,

    pub(super) classes: IndexVec<ClassIdx, NodeShape>,
    pub(super) class_by_shape: FxHashMap<NodeShape, ClassIdx>,
    pub(super) sigs: IndexVec<SigIdx, Signature>,
    pub(super) sig_by_key: FxHashMap<SignatureKey, SigIdx>,
    pub(super) shapes: DemandMix,

    pub(super) nodes: IndexVec<NodeIdx, Option<NodeRow>>,
    pub(super) node_by_name: FxHashMap<Arc<str>, NodeIdx>,
    pub(super) vacant_nodes: Vec<NodeIdx>,
    pub(super) states: StateTable,
    pub(super) capacity: Capacity,
    /// Usable nodes that came with the cluster, per class and domain, full or empty.
    pub(super) standing: IndexVec<DomainIdx, Tally<ClassIdx>>,
    /// The total capacity of all usable nodes, free or not.
    pub(super) total: Usage,

    pub(super) queues: IndexVec<QueueIdx, Queue>,
    pub(super) queue_by_name: FxHashMap<Arc<str>, QueueIdx>,
    /// Whether any queue has a limit, for all or for single users.
    pub(super) has_limits: bool,
    pub(super) pools: IndexVec<PoolIdx, Pool>,
    pub(super) pool_by_name: FxHashMap<Arc<str>, PoolIdx>,

    pub(super) gangs: IndexVec<GangId, Option<Box<Gang>>>,
    pub(super) gang_by_name: FxHashMap<Arc<str>, GangId>,
    pub(super) live: BTreeSet<GangId>,
    pub(super) pending: BTreeSet<GangId>,
    pub(super) wait_queue: WaitQueue,
    /// Running gangs, by their estimated end.
    pub(super) estimated_ends: BTreeSet<(Time, GangId)>,
    /// The estimates of gangs that are not over, and how many gangs have each.
    pub(super) estimates: BTreeMap<Span, u32>,
    /// Gangs with a member on a node that is gone, and which node.
    pub(super) broken: BTreeMap<GangId, NodeIdx>,
    pub(super) cancelled: BTreeSet<GangId>,
    /// Gangs that wait because a node under them failed.
    pub(super) repairs: BTreeSet<GangId>,
    /// How many gangs that are not over could ever give up seats for others.
    pub(super) disruptable: u32,
    /// Gangs that give up seats for an order, and for which.
    pub(super) making_way: BTreeMap<GangId, OrderId>,
    /// Nodes that will be gone, and when.
    pub(super) noticed: BTreeSet<(Time, NodeIdx)>,
    /// How often nodes have failed under their gangs.
    pub(super) flaky: BTreeMap<Arc<str>, Strikes>,
    /// Nodes in quarantine, and until when.
    pub(super) quarantine: BTreeSet<(Time, NodeIdx)>,

    pub(super) history: History,
    pub(super) baseline: Option<Baseline>,

    pub(super) orders: BTreeMap<OrderId, Order>,
    pub(super) claims: BTreeMap<ClaimId, Claim>,
    pub(super) next_order: u32,
    pub(super) next_claim: u32,
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
            shapes: DemandMix::default(),
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
            wait_queue: WaitQueue::default(),
            estimated_ends: BTreeSet::new(),
            estimates: BTreeMap::new(),
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
        world
            .set_queue(crate::objects::queue::QueueSpec::open(crate::world::supply::DEFAULT))
            .expect("the first queue");
        world.cover_topology();
        world
    }

    /// The same, which also keeps the baseline; see [`crate::baseline`].
    pub fn with_baseline(levels: Levels) -> Self {
        Self { baseline: Some(Baseline::default()), ..Self::new(levels) }
    }

    pub(super) fn row(&self, node: NodeIdx) -> &NodeRow {
        self.nodes[node].as_ref().expect("a node that is not forgotten")
    }
    pub(super) fn row_mut(&mut self, node: NodeIdx) -> &mut NodeRow {
        self.nodes[node].as_mut().expect("a node that is not forgotten")
    }
    pub(super) fn gang_mut(&mut self, gang: GangId) -> &mut Gang {
        self.gangs[gang].as_deref_mut().expect("a gang that is not over")
    }
    pub(super) fn cover_topology(&mut self) {
        self.capacity.cover(&self.topology);
        self.standing.grow(self.topology.len(), Tally::default());
    }
}
