//! The books: everything known from facts alone.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use muster_core::gang::{GangSpec, Seat};
use muster_core::id::{ClaimId, GangId, NodeIdx, OfferingRef, OrderId, PoolIdx};
use muster_core::plan::Target;
use muster_core::pool::OfferingSpec;
use muster_core::resource::{NamedAmounts, is_extended};
use muster_core::time::Time;
use rustc_hash::FxHashMap;

use crate::promises::gangs::evictions::Debt;
use crate::promises::nodes::quarantine::Strikes;
use crate::promises::{Promise, Terms, Violation};

/// A gang that is not over.
#[derive(Debug)]
pub(crate) struct GangEntry {
    pub(crate) spec: Arc<GangSpec>,
    pub(crate) submitted: Time,
    /// Since when it has its place in the queue: a gang whose time slice ended goes to the end.
    pub(crate) in_line_since: Time,
    pub(crate) cancelled: bool,
    /// Members that run, as seats.
    pub(crate) members: Vec<Seat>,
    /// Since when some but not all roles have their minimum running.
    pub(crate) partial_since: Option<Time>,
    /// A node under it was lost and it has not been stopped since.
    pub(crate) lost_node: bool,
    /// It was stopped because of a node, and has not started since: it goes before all others.
    pub(crate) mends: bool,
    /// Since when all of it runs.
    pub(crate) started: Option<Time>,
    /// The resize it was told to make, if any.
    pub(crate) resizing: Option<Resizing>,
    /// The nodes where members of it stopped since the last check.
    pub(crate) shed: Vec<NodeIdx>,
    pub(crate) order: Option<OrderId>,
    /// The capacity it starts on was reserved for it when its order was placed, however long ago.
    pub(crate) promised: bool,
}

/// A resize that a gang was told to make.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resizing {
    /// When it was told.
    pub(crate) told: Time,
    /// To how many members.
    pub(crate) to: u32,
    /// It has them; dropped at the next check.
    pub(crate) done: bool,
}

impl GangEntry {
    /// Whether every role has at least its minimum running.
    pub(crate) fn is_whole(&self) -> bool {
        let running = |role: usize| -> u32 {
            let mine = self.members.iter().filter(|seat| usize::from(seat.role) == role);
            mine.map(|seat| u32::from(seat.members)).sum()
        };
        self.spec.roles.iter().enumerate().all(|(i, role)| running(i) >= role.min)
    }
    /// GPUs its running members hold, in thousandths.
    pub(crate) fn gpu_milli(&self) -> u64 {
        let each = |seat: &Seat| self.spec.roles[usize::from(seat.role)].request.gpu_milli();
        self.members.iter().map(|seat| each(seat) * u64::from(seat.members)).sum()
    }
}

/// A node that is present.
#[derive(Debug)]
pub(crate) struct NodeEntry {
    pub(crate) name: Arc<str>,
    pub(crate) claim: Option<ClaimId>,
    pub(crate) allocatable: NamedAmounts,
    pub(crate) gpus: u16,
    pub(crate) ready: bool,
    pub(crate) used: BTreeMap<Arc<str>, u64>,
    pub(crate) devices: [u32; 64],
    pub(crate) members: u32,
    /// Seats reserved by assembling orders, and for members that gangs are to get.
    pub(crate) holds: u32,
    /// When it was announced to go, if it was.
    pub(crate) noticed: Option<Time>,
    /// Until when no new member may start there, because it failed too often.
    pub(crate) shunned: Option<Time>,
}

impl NodeEntry {
    /// What it lacks of what an offering promises, with the present and the promised amount.
    pub(crate) fn lacks(&self, offering: &OfferingSpec) -> Option<(Arc<str>, u64, u64)> {
        let shown = |name: &Arc<str>| self.allocatable.get(name).copied().unwrap_or(0);
        let promised = offering.allocatable.iter().filter(|(name, _)| is_extended(name));
        let mut all = promised
            .map(|(name, promised)| (name.clone(), shown(name), *promised))
            .chain([("GPUs".into(), u64::from(self.gpus), u64::from(offering.gpus))]);
        all.find(|(_, shown, promised)| shown < promised)
    }
}

/// A claim that is not gone.
#[derive(Debug)]
pub(crate) struct ClaimEntry {
    pub(crate) offering: OfferingRef,
    pub(crate) order: Option<OrderId>,
    pub(crate) node: Option<NodeIdx>,
    pub(crate) failed: bool,
    pub(crate) released: bool,
    /// Told to stop, stopped, and not started since.
    pub(crate) parked: bool,
    /// Since when it is unused: no order, no member.
    pub(crate) idle_since: Time,
}

/// An order that assembles.
#[derive(Debug)]
pub(crate) struct OrderEntry {
    pub(crate) gang: GangId,
    pub(crate) claims: Vec<ClaimId>,
    pub(crate) holds: Vec<NodeIdx>,
    pub(crate) placed: Time,
    pub(crate) deadline: Time,
    /// Its victims.
    pub(crate) after: Vec<GangId>,
    /// Gangs that were stopped for it.
    pub(crate) evicted: Vec<GangId>,
}

/// Everything known.
#[derive(Debug)]
pub(crate) struct Books {
    pub(crate) terms: Terms,
    pub(crate) now: Time,
    pub(crate) gangs: BTreeMap<GangId, GangEntry>,
    pub(crate) nodes: BTreeMap<NodeIdx, NodeEntry>,
    pub(crate) claims: BTreeMap<ClaimId, ClaimEntry>,
    pub(crate) orders: BTreeMap<OrderId, OrderEntry>,
    /// When an order was last rolled back because of this offering.
    pub(crate) blamed: FxHashMap<OfferingRef, Time>,
    /// How many free nodes each pool is to have, by the planner's last targets.
    pub(crate) targets: BTreeMap<PoolIdx, Target>,
    /// Gangs touched since the last check.
    pub(crate) touched: BTreeSet<GangId>,
    /// Gangs that got capacity since the last check.
    pub(crate) served: BTreeSet<GangId>,
    /// Gangs that waited, with nothing coming, at the last check.
    pub(crate) waiting: BTreeSet<GangId>,
    /// Gangs that may be overtaken now: their queue is at its limit, or they can never run.
    pub(crate) excused: BTreeSet<GangId>,
    /// Gangs that were told to stop or to resize, and when; they have their grace.
    pub(crate) leaving: BTreeMap<GangId, Time>,
    /// Nodes reserved for members that gangs are to get.
    pub(crate) joins: BTreeMap<GangId, Vec<NodeIdx>>,
    /// Victims of gangs that have not started yet.
    pub(crate) victims: BTreeMap<GangId, Debt>,
    /// When gangs of each queue were evicted, within the last hour.
    pub(crate) evictions: BTreeMap<Arc<str>, VecDeque<Time>>,
    /// Failures of nodes that came with the cluster, by name.
    pub(crate) strikes: BTreeMap<Arc<str>, Strikes>,
    /// Whether gangs ever differed in priority.
    pub(crate) has_priorities: bool,
    pub(crate) partial_gpu_ms: u64,
}

impl Books {
    pub(crate) fn new(terms: Terms) -> Self {
        Self {
            terms,
            now: Time::ZERO,
            gangs: BTreeMap::new(),
            nodes: BTreeMap::new(),
            claims: BTreeMap::new(),
            orders: BTreeMap::new(),
            blamed: FxHashMap::default(),
            targets: BTreeMap::new(),
            touched: BTreeSet::new(),
            served: BTreeSet::new(),
            waiting: BTreeSet::new(),
            excused: BTreeSet::new(),
            leaving: BTreeMap::new(),
            joins: BTreeMap::new(),
            victims: BTreeMap::new(),
            evictions: BTreeMap::new(),
            strikes: BTreeMap::new(),
            has_priorities: false,
            partial_gpu_ms: 0,
        }
    }
    pub(crate) fn violation(&self, promise: Promise, what: String) -> Violation {
        Violation { promise, at: self.now, what }
    }
    /// Reserves seats on these nodes, one for each time a node is named.
    pub(crate) fn hold(&mut self, nodes: &[NodeIdx]) {
        for node in nodes {
            if let Some(node) = self.nodes.get_mut(node) {
                node.holds += 1;
            }
        }
    }
    /// Drops reserved seats on these nodes.
    pub(crate) fn let_go(&mut self, nodes: &[NodeIdx]) {
        for node in nodes {
            let Some(node) = self.nodes.get_mut(node) else { continue };
            node.holds -= 1;
            if let Some(claim) = node.claim.and_then(|claim| self.claims.get_mut(&claim)) {
                claim.idle_since = self.now;
            }
        }
    }
    /// A gang's name, for messages.
    pub(crate) fn name(&self, gang: GangId) -> String {
        self.gangs
            .get(&gang)
            .map_or_else(|| format!("{gang:?}"), |entry| entry.spec.name.to_string())
    }
}
