//! Orders, their claims and their reservations: capacity requested as one unit.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::hardware::device::DeviceSet;
use crate::id::{ClaimId, GangId, NodeIdx, OfferingRef, OrderId};
use crate::messages::plan::StopReason;
use crate::messages::verdict::Considered;
use crate::objects::gang::Seat;
use crate::units::time::Time;

/// Why a claim did not become a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum ClaimFailure {
    /// The provider is out of stock.
    StockOut,
    /// The machine was launched but never joined.
    BootFailed,
    /// It joined, but not with every GPU.
    GpusMissing,
    /// It joined with everything that is waited for, but the members it was meant for do not fit on it.
    TooSmall,
    /// It disappeared.
    Vanished,
    /// The provider asked to retry later.
    Throttled,
}

impl ClaimFailure {
    /// Whether a retry of the same request is likely to help.
    pub fn is_transient(self) -> bool {
        self == ClaimFailure::Throttled
    }
}

/// What a claim in progress waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum ClaimStage {
    /// A machine.
    Launch,
    /// Its node.
    Register,
    /// Its GPUs, and the extended resources that were promised.
    Gpus,
}

/// The state of a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ClaimState {
    /// Requested.
    Requested,
    /// The provider has started a machine.
    Launched,
    /// Its node has joined.
    Registered(NodeIdx),
    /// Its node is ready and shows every GPU and extended resource that was promised.
    Ready(NodeIdx),
    /// It will not become a node.
    Failed(ClaimFailure),
    /// Its machine is being stopped, to be started again when it is needed.
    Stopping,
    /// Its machine is stopped.
    Stopped,
}

/// The request for one node.
#[derive(Clone, Debug)]
pub struct Claim {
    /// A name that says which order it belongs to, the same on every try.
    pub name: Arc<str>,
    /// The offering it requests.
    pub offering: OfferingRef,
    /// The order it belongs to, while that order lives.
    pub order: Option<OrderId>,
    /// Its state.
    pub state: ClaimState,
    /// Its node, if one has joined and is not gone; a claim that failed may still have one.
    pub joined: Option<NodeIdx>,
    /// When it was requested.
    pub requested: Time,
    /// When it entered its state.
    pub since: Time,
    /// How often it was requested again after the provider asked to retry later.
    pub retries: u32,
    /// Its node is too old, or is being consolidated: it takes no new members and is released when the last one has
    /// left.
    pub retiring: bool,
    /// Released; the host is giving the node back.
    pub releasing: bool,
}

impl Claim {
    /// The name of its node, where hosts name nodes.
    pub fn node_name(&self) -> Arc<str> {
        format!("node-{}", self.name).into()
    }
    /// Its node.
    pub fn node(&self) -> Option<NodeIdx> {
        match self.state {
            ClaimState::Registered(node) | ClaimState::Ready(node) => Some(node),
            ClaimState::Requested
            | ClaimState::Launched
            | ClaimState::Failed(_)
            | ClaimState::Stopping
            | ClaimState::Stopped => None,
        }
    }
    /// Whether its node is ready and shows everything its offering promises.
    pub fn is_ready(&self) -> bool {
        matches!(self.state, ClaimState::Ready(_))
    }
    /// What it waits for, if it is in progress.
    pub fn stage(&self) -> Option<ClaimStage> {
        match self.state {
            ClaimState::Requested => Some(ClaimStage::Launch),
            ClaimState::Launched => Some(ClaimStage::Register),
            ClaimState::Registered(_) => Some(ClaimStage::Gpus),
            ClaimState::Ready(_)
            | ClaimState::Failed(_)
            | ClaimState::Stopping
            | ClaimState::Stopped => None,
        }
    }
    /// Whether a gang may be promised its node: it is unassigned, and is coming or can be started again.
    pub fn is_unassigned(&self) -> bool {
        let coming = self.stage().is_some() || self.state == ClaimState::Stopped;
        coming && self.order.is_none() && !self.releasing && !self.retiring
    }
}

/// A node that is here, or one that is still to come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Place {
    /// A node that is here.
    Node(NodeIdx),
    /// The node of this claim.
    Claim(ClaimId),
}

/// Capacity, present or coming, that is promised to one member of a gang, or to several identical ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Reservation {
    /// Where.
    pub place: Place,
    /// Which devices there.
    pub devices: DeviceSet,
    /// For which role.
    pub role: u16,
    /// For how many of its members; one where there are devices.
    pub members: u16,
}

/// The seats that a victim gives up for another gang.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct VictimSeats {
    /// The victim.
    pub gang: GangId,
    /// Which seats. All it has if it is stopped.
    pub seats: Vec<Seat>,
    /// Why it is stopped; none if it only shrinks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopReason>,
}

/// An order as decided by the planner.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OrderSpec {
    /// Its number.
    pub id: OrderId,
    /// The gang it is for.
    pub gang: GangId,
    /// The claims, numbered and with their offerings. Some may be in progress already, or stopped: nodes that were
    /// ordered ahead of need, or for an order that has failed.
    pub claims: Vec<(ClaimId, OfferingRef)>,
    /// A seat for every member.
    pub reservations: Vec<Reservation>,
    /// When it is rolled back if it is not complete.
    pub deadline: Time,
    /// The victims that give up seats for it, all of them or only those above their minimum.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<VictimSeats>,
    /// What its nodes cost above the cheapest possible set, in thousandths of that; never too little.
    #[serde(default)]
    pub gap: u32,
    /// The options to start the gang that were compared when it was placed, this one among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ways: Vec<Considered>,
}

/// Why an order was rolled back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum RollbackReason {
    /// One claim failed for good.
    ClaimFailed(ClaimId, ClaimFailure),
    /// One claim has been in one stage for too long.
    Overdue(ClaimId, ClaimStage),
    /// It was not complete in time.
    DeadlinePassed,
    /// A node it had a reservation on is gone.
    NodeLost(NodeIdx),
    /// A node joined or changed in a way that excludes the gang.
    NodeUnsuitable(NodeIdx),
    /// The gang was cancelled.
    GangGone,
    /// A victim can no longer give up its seats.
    WayClosed,
    /// It could not be stored, so nothing of it was carried out.
    NotWritten,
    /// The gang fits on capacity that has become free since: it starts there, and no offering is at fault.
    NotNeeded,
}

/// An order that is assembling. Complete and rolled-back orders leave the World at that moment.
#[derive(Clone, Debug)]
pub struct Order {
    /// As decided.
    pub spec: OrderSpec,
    /// When it was placed.
    pub placed: Time,
    /// Victims that have not left yet.
    pub after: Vec<VictimSeats>,
    /// Failed claims that were replaced instead of rolling the order back.
    pub top_ups: u32,
    /// Seats it holds already: those on nodes that were here, and those on claims that are ready.
    pub held: Vec<Seat>,
}
