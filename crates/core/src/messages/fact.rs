//! Facts: what really happened, as somebody watching from outside would note it.
//!
//! Events tell the World what to believe; facts are for those who check or show what was done: promise
//! checkers, timelines, accounts. A host emits a fact when the thing has happened, not when it was decided.

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
    /// Somebody does not want a gang any more.
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
        /// Gangs that make way for it, wholly or in part.
        after: Vec<GangId>,
        /// When it is given up.
        deadline: Time,
    },
    /// Every node of an order is ready and its gang admitted.
    OrderCompleted {
        /// Which.
        order: OrderId,
        /// For which gang.
        gang: GangId,
    },
    /// An order was given up whole.
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
        /// What took its place.
        claim: ClaimId,
        /// And what it asks for.
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
    /// The provider was asked for one node.
    ClaimRequested {
        /// Which.
        claim: ClaimId,
        /// Of which kind.
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
    /// The provider was asked again for a node it had put off.
    ClaimRetried {
        /// Which.
        claim: ClaimId,
    },
    /// A node was told to stop; it is woken when it is needed.
    ClaimParked {
        /// Which.
        claim: ClaimId,
    },
    /// A machine is stopped.
    ClaimStopped {
        /// Which.
        claim: ClaimId,
    },
    /// A stopped machine was told to come up again.
    ClaimWoken {
        /// Which.
        claim: ClaimId,
    },
    /// A node takes nobody new, and goes when the last has left.
    ClaimRetired {
        /// Which.
        claim: ClaimId,
    },
    /// The provider was told to take a node back.
    ClaimReleased {
        /// Which.
        claim: ClaimId,
    },
    /// Nothing is left of a claim, neither node nor bill.
    ClaimGone {
        /// Which.
        claim: ClaimId,
    },
    /// A node is there, ready or not, or has changed.
    NodeSeen {
        /// Its slot.
        node: NodeIdx,
        /// Its name.
        name: Arc<str>,
        /// The claim it answers.
        claim: Option<ClaimId>,
        /// What members may use, without GPUs.
        allocatable: NamedAmounts,
        /// GPUs that have appeared.
        gpus: u16,
        /// Whether it is called ready.
        ready: bool,
    },
    /// A node is no more.
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
    /// A gang that runs was told to have so many members in all.
    GangResizing {
        /// Which.
        gang: GangId,
        /// Members it has.
        from: u32,
        /// Members it is to have.
        to: u32,
        /// Nodes that are kept for members it is to get, one for each of its seats there.
        joins: Vec<NodeIdx>,
    },
    /// A gang is of another size from now on: its owner has thought again, or it has become what its owner asked for before.
    GangChanged {
        /// Which.
        gang: GangId,
        /// What it is now.
        spec: Arc<GangSpec>,
    },
    /// A gang has the members it was told to have.
    GangResized {
        /// Which.
        gang: GangId,
    },
    /// A gang did not want more members.
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
    /// A gang has done its work.
    GangEnded {
        /// Which.
        gang: GangId,
    },
    /// A member of a gang failed, and the rest was stopped. What has ended in failure is told to have ended after this.
    GangFailed {
        /// Which.
        gang: GangId,
        /// How, in words.
        why: Arc<str>,
        /// Which retry comes next, and how many there are; nothing when it has failed for good.
        retry: Option<(u32, u32)>,
    },
    /// The planner's process died; what it had written down is all that is left.
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

    /// What has happened once a decision is written down, if anything has by that alone. Asked before the World is told
    /// of it: then it still knows which order is completed, and for whom one was.
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
