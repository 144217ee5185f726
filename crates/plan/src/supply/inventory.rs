//! The inventory of each pool: its claims by what can be done with them.

use std::collections::BTreeSet;

use muster_core::id::{ClaimId, Id, NodeIdx, OfferingRef};
use muster_core::order::{Claim, ClaimState, Place};
use muster_core::plan::{Action, Plan};

use crate::cycle::{Cycle, earliest};

/// The claims of one pool by what they are.
#[derive(Clone, Debug, Default)]
pub(super) struct PoolInventory {
    /// Nodes that gangs use or have been promised.
    pub(super) in_use: u32,
    /// Of those, nodes that orders still wait for.
    pub(super) awaited: u32,
    /// Ready nodes that are not used.
    pub(super) idle: Vec<(ClaimId, NodeIdx)>,
    /// Nodes that only other workloads use. They are kept, and count as free: other workloads do not make a pool buy
    /// more.
    pub(super) shared: u32,
    /// Under way, for no order.
    pub(super) coming: Vec<ClaimId>,
    /// Stopped, or about to be.
    pub(super) stopped: Vec<ClaimId>,
    /// Failed, for no order, with no gang on the node.
    pub(super) failed: Vec<ClaimId>,
    /// Retiring, with no gang left on the node.
    pub(super) retired: Vec<ClaimId>,
    /// Offerings of claims that are released because they took too long, or were put off too often.
    pub(super) unreliable: Vec<OfferingRef>,
    /// Used, and not retiring.
    pub(super) used: Vec<(ClaimId, NodeIdx)>,
}

impl PoolInventory {
    /// Ready nodes that no gang uses.
    pub(super) fn free(&self) -> u32 {
        self.idle.len() as u32 + self.shared
    }
}

/// Sorts every claim into its pool's inventory.
pub(super) fn inventories(cycle: &mut Cycle<'_>, plan: &Plan) -> Vec<PoolInventory> {
    let (world, now) = (cycle.scratch.world, cycle.now);
    let mut wake = None;
    // Other workloads do not keep a node that failed, nor one that takes too long to become ready.
    let mut is_kept = |id: ClaimId, claim: &Claim| match (claim.state, world.claim_due(id)) {
        (ClaimState::Failed(_), _) => false,
        (_, Some((_, due))) => {
            wake = earliest(wake, Some(due).filter(|due| *due > now));
            due > now
        }
        (_, None) => true,
    };
    let mut all = vec![PoolInventory::default(); world.pools().len()];
    let wanted = wanted_nodes(plan);
    let promised: BTreeSet<ClaimId> = cycle
        .scratch
        .paper()
        .iter()
        .filter_map(|node| node.coming)
        .chain(cycle.given.reassigned.iter().copied())
        .collect();
    for node in cycle.scratch.paper().iter().filter(|node| node.coming.is_none()) {
        let held = &mut all[node.offering.pool.index()];
        held.in_use += 1;
        held.awaited += 1;
    }
    for (id, claim) in world.claims() {
        let held = &mut all[claim.offering.pool.index()];
        if claim.releasing {
            continue;
        }
        if claim.order.is_some() || promised.contains(id) {
            held.in_use += 1;
            held.awaited += u32::from(claim.stage().is_some());
            continue;
        }
        let joined = claim.joined.and_then(|node| Some((node, world.node(node)?)));
        if let Some((node, here)) = joined
            && (here.seats > 0 || wanted.contains(&node))
        {
            held.in_use += 1;
            if !claim.retiring && claim.is_ready() {
                held.used.push((*id, node));
            }
            continue;
        }
        if let Some((node, here)) = joined
            && here.others
            && is_kept(*id, claim)
        {
            held.shared += u32::from(!claim.retiring);
            if !claim.retiring && claim.is_ready() {
                held.used.push((*id, node));
            }
            continue;
        }
        if claim.retiring {
            held.retired.push(*id);
            continue;
        }
        match claim.state {
            ClaimState::Ready(node) => held.idle.push((*id, node)),
            ClaimState::Requested | ClaimState::Launched | ClaimState::Registered(_) => {
                held.coming.push(*id);
            }
            ClaimState::Stopping | ClaimState::Stopped => held.stopped.push(*id),
            ClaimState::Failed(_) => held.failed.push(*id),
        }
    }
    cycle.wake = earliest(cycle.wake, wake);
    all
}

/// Nodes on which members are to run by what was decided in this cycle.
fn wanted_nodes(plan: &Plan) -> BTreeSet<NodeIdx> {
    let mut wanted = BTreeSet::new();
    for action in plan.actions() {
        match action {
            Action::Admit { seats, .. } | Action::Resize { seats, .. } => {
                wanted.extend(seats.iter().map(|seat| seat.node));
            }
            Action::Order(spec) => {
                wanted.extend(spec.reservations.iter().filter_map(|r| match r.place {
                    Place::Node(node) => Some(node),
                    Place::Claim(_) => None,
                }));
            }
            _ => {}
        }
    }
    wanted
}
