//! Facts: what really happened, as an outside observer would record it.
//!
//! Events tell the World what to believe; facts are for checks and reports of what was done: promise checkers,
//! timelines, accounting. A host emits a fact when the thing has happened, not when it was decided.

use std::sync::Arc;

use serde::Serialize;

use crate::World;
use crate::hardware::device::DeviceSet;
use crate::hardware::resource::NamedAmounts;
use crate::id::{ClaimId, GangId, NodeIdx, OfferingRef, OrderId};
use crate::messages::plan::{Action, StopReason};
use crate::objects::gang::{GangSpec, Phase, Seat};
use crate::objects::order::{ClaimFailure, Place, RollbackReason};
use crate::units::time::Time;

/// One thing that happened.
#[derive(Clone, Debug, Serialize)]
pub enum Fact {
    /// A gang entered its queue.
    GangSubmitted {
        /// Its number.
        gang: GangId,
        /// As submitted.
        spec: Arc<GangSpec>,
    },
    /// A submission was refused; nothing of it remains.
    GangRefused {
        /// Its name.
        name: Arc<str>,
        /// Why.
        why: String,
    },
    /// A gang was cancelled.
    GangCancelled {
        /// Which.
        gang: GangId,
    },
    /// An order was placed.
    OrderPlaced {
        /// Its number.
        order: OrderId,
        /// For which gang.
        gang: GangId,
        /// Its claims.
        claims: Vec<(ClaimId, OfferingRef)>,
        /// The nodes that are here already and on which members will sit, once per member.
        holds: Vec<NodeIdx>,
        /// Victims that give up seats for it, all or some.
        after: Vec<GangId>,
        /// When it is rolled back if it is not complete.
        deadline: Time,
    },
    /// Every node of an order is ready and its gang admitted.
    OrderCompleted {
        /// Which.
        order: OrderId,
        /// For which gang.
        gang: GangId,
    },
    /// An order was rolled back as a whole.
    OrderRolledBack {
        /// Which.
        order: OrderId,
        /// For which gang.
        gang: GangId,
        /// Why.
        reason: RollbackReason,
    },
    /// A failed claim of an order was replaced.
    OrderToppedUp {
        /// Which.
        order: OrderId,
        /// The claim that failed.
        lost: ClaimId,
        /// The claim that replaces it.
        claim: ClaimId,
        /// The offering of that claim.
        offering: OfferingRef,
    },
    /// Two orders exchanged a node that is ready for one that is coming.
    OrdersExchanged {
        /// The order that got the ready node.
        gets: OrderId,
        /// The claim it gave for it.
        coming: ClaimId,
        /// The order that waits for the other instead.
        gives: OrderId,
        /// The claim whose node is ready.
        ready: ClaimId,
    },
    /// A node was requested from the provider.
    ClaimRequested {
        /// Which.
        claim: ClaimId,
        /// Its offering.
        offering: OfferingRef,
    },
    /// The provider has started a machine.
    ClaimLaunched {
        /// For which claim.
        claim: ClaimId,
    },
    /// A claim will not become a node.
    ClaimFailed {
        /// Which.
        claim: ClaimId,
        /// Why.
        failure: ClaimFailure,
    },
    /// A node was requested again after the provider had asked to retry later.
    ClaimRetried {
        /// Which.
        claim: ClaimId,
    },
    /// A node was told to stop; it is started again when it is needed.
    ClaimParked {
        /// Which.
        claim: ClaimId,
    },
    /// A machine is stopped.
    ClaimStopped {
        /// Which.
        claim: ClaimId,
    },
    /// A stopped machine was told to start again.
    ClaimWoken {
        /// Which.
        claim: ClaimId,
    },
    /// A node takes no new members, and is released when the last one has left.
    ClaimRetired {
        /// Which.
        claim: ClaimId,
    },
    /// A node was released to the provider.
    ClaimReleased {
        /// Which.
        claim: ClaimId,
    },
    /// A claim is gone: neither machine nor cost is left.
    ClaimGone {
        /// Which.
        claim: ClaimId,
    },
    /// A node is present, ready or not, or has changed.
    NodeSeen {
        /// Its slot.
        node: NodeIdx,
        /// Its name.
        name: Arc<str>,
        /// The claim it fulfils.
        claim: Option<ClaimId>,
        /// What members may use, without GPUs.
        allocatable: NamedAmounts,
        /// GPUs that have appeared.
        gpus: u16,
        /// Whether it is ready.
        ready: bool,
    },
    /// A node is gone.
    NodeLost {
        /// Its slot.
        node: NodeIdx,
        /// Its name.
        name: Arc<str>,
    },
    /// Members run, all of them in one place.
    MembersStarted {
        /// Of which gang.
        gang: GangId,
        /// In which role, by place in the gang's list.
        role: u16,
        /// On which node.
        node: NodeIdx,
        /// On which of its devices.
        devices: DeviceSet,
        /// How many; one where there are devices.
        members: u16,
    },
    /// Members no longer run.
    MembersStopped {
        /// Of which gang.
        gang: GangId,
        /// In which role.
        role: u16,
        /// On which node.
        node: NodeIdx,
        /// On which of its devices.
        devices: DeviceSet,
        /// How many; one where there are devices.
        members: u16,
    },
    /// Every member of a gang was started.
    GangStarted {
        /// Which.
        gang: GangId,
    },
    /// A gang was told to stop; its members have their grace.
    GangStopping {
        /// Which.
        gang: GangId,
        /// Why.
        reason: StopReason,
    },
    /// A running gang was told to resize to so many members in all.
    GangResizing {
        /// Which.
        gang: GangId,
        /// Members it has.
        from: u32,
        /// Members it is to have.
        to: u32,
        /// Nodes that are reserved for members it is to get, one for each of its seats there.
        joins: Vec<NodeIdx>,
    },
    /// A gang has another size from now on: its owner changed it, or an earlier change has taken effect.
    GangChanged {
        /// Which.
        gang: GangId,
        /// What it is now.
        spec: Arc<GangSpec>,
    },
    /// A gang has the members of its last resize.
    GangResized {
        /// Which.
        gang: GangId,
    },
    /// A gang declined more members.
    ResizeDeclined {
        /// Which.
        gang: GangId,
    },
    /// A node will be gone.
    NodeNoticed {
        /// Its slot.
        node: NodeIdx,
        /// When.
        by: Time,
    },
    /// Every member of a gang was stopped before its work was done.
    GangStopped {
        /// Which.
        gang: GangId,
        /// Why.
        reason: StopReason,
    },
    /// A gang has finished.
    GangEnded {
        /// Which.
        gang: GangId,
    },
    /// A member of a gang failed, and the rest was stopped. `GangEnded` follows where it failed for good.
    GangFailed {
        /// Which.
        gang: GangId,
        /// The failure, in words.
        why: Arc<str>,
        /// Which retry comes next, and how many there are; none when it has failed for good.
        retry: Option<(u32, u32)>,
    },
    /// The planner's process died; only what it had stored is left.
    Crashed,
}

impl Fact {
    /// Members run in a seat.
    pub fn members_started(gang: GangId, seat: &Seat) -> Self {
        let Seat { devices, node, role, members } = *seat;
        Self::MembersStarted { gang, role, node, devices, members }
    }

    /// Members no longer run in a seat.
    pub fn members_stopped(gang: GangId, seat: &Seat) -> Self {
        let Seat { devices, node, role, members } = *seat;
        Self::MembersStopped { gang, role, node, devices, members }
    }

    /// The fact that follows from storing a decision alone, if there is one. Called before the World applies the
    /// decision: then it still knows which order is completed, and for which gang.
    pub fn of_decision(world: &World, action: &Action) -> Option<Self> {
        match action {
            Action::Admit { gang, .. } => match world.gang(*gang)?.phase {
                Phase::Assembling(order) => Some(Self::OrderCompleted { order, gang: *gang }),
                _ => None,
            },
            Action::Order(spec) => {
                let here = spec.reservations.iter().filter_map(|one| match one.place {
                    Place::Node(node) => Some(node),
                    Place::Claim(_) => None,
                });
                Some(Self::OrderPlaced {
                    order: spec.id,
                    gang: spec.gang,
                    claims: spec.claims.clone(),
                    holds: here.collect(),
                    after: spec.after.iter().map(|way| way.gang).collect(),
                    deadline: spec.deadline,
                })
            }
            Action::RollBack { order, reason } => {
                let gang = world.orders().get(order)?.spec.gang;
                Some(Self::OrderRolledBack { order: *order, gang, reason: *reason })
            }
            Action::TopUp { order, lost, claim, offering } => {
                let (order, lost, claim, offering) = (*order, *lost, *claim, *offering);
                Some(Self::OrderToppedUp { order, lost, claim, offering })
            }
            Action::Exchange { gets, coming, gives, ready } => {
                let (gets, coming, gives, ready) = (*gets, *coming, *gives, *ready);
                Some(Self::OrdersExchanged { gets, coming, gives, ready })
            }
            Action::Stock { .. }
            | Action::Retry { .. }
            | Action::Park { .. }
            | Action::Retire { .. }
            | Action::Resize { .. }
            | Action::Stop { .. }
            | Action::Release { .. } => None,
        }
    }
}
