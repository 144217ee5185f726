//! Claims, orders and reservations: capacity that was asked for, as a unit.

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
    /// The provider has none to give.
    StockOut,
    /// The machine was launched but never came up.
    BootFailed,
    /// It came up, but not with every GPU.
    GpusMissing,
    /// It came up with all that is waited for, and those who were to have it do not fit on it.
    TooSmall,
    /// It disappeared.
    Vanished,
    /// The provider said: not now, ask again.
    Throttled,
}

impl ClaimFailure {
    /// Whether asking again for the same is likely to help.
    pub fn is_transient(self) -> bool {
        self == ClaimFailure::Throttled
    }
}

/// What a claim that is under way waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum ClaimStage {
    /// A machine.
    Launch,
    /// Its node.
    Register,
    /// Its GPUs, and the extended resources that were promised.
    Gpus,
}

/// How far a claim is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ClaimState {
    /// Asked for.
    Requested,
    /// The provider has started a machine.
    Launched,
    /// Its node has joined.
    Registered(NodeIdx),
    /// Its node is ready and shows every GPU and extended resource that was promised.
    Ready(NodeIdx),
    /// It will not come.
    Failed(ClaimFailure),
    /// Its machine is being stopped, to be woken when it is needed.
    Stopping,
    /// Its machine is stopped.
    Stopped,
}

/// The request for one node.
#[derive(Clone, Debug)]
pub struct Claim {
    /// A name that says which order it belongs to, the same on every try.
    pub name: Arc<str>,
    /// What was asked for.
    pub offering: OfferingRef,
    /// The order it belongs to, while that order lives.
    pub order: Option<OrderId>,
    /// How far it is.
    pub state: ClaimState,
    /// Its node, if one has joined and is not gone; a claim that failed may still have one.
    pub joined: Option<NodeIdx>,
    /// When it was asked for.
    pub requested: Time,
    /// When it came to the state it is in.
    pub since: Time,
    /// How often it was asked for again after the provider said: not now.
    pub retries: u32,
    /// Its node is too old, or not wanted where it is: it takes nobody new and goes when the last has left.
    pub retiring: bool,
    /// Told to go; the host is giving the node back.
    pub releasing: bool,
}

impl Claim {
    /// What its node is called, where hosts give names to nodes.
    pub fn node_name(&self) -> Arc<str> {
        format!("node-{}", self.name).into()
    }
    /// The node it became.
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
    /// Whether its node is ready and shows all that was promised.
    pub fn is_ready(&self) -> bool {
        matches!(self.state, ClaimState::Ready(_))
    }
    /// What it waits for, if it is under way.
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
    /// Whether a gang may be promised the node it will become: it is nobody's, and is coming or can be woken.
    pub fn is_for_anybody(&self) -> bool {
        let coming = self.stage().is_some() || self.state == ClaimState::Stopped;
        coming && self.order.is_none() && !self.releasing && !self.retiring
    }
}

/// A seat on a node that is here, or on one that is still to come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Place {
    /// A node that is here.
    Node(NodeIdx),
    /// The node this claim will become.
    Claim(ClaimId),
}

/// Capacity, present or coming, that is promised to one member of one gang, or to several that differ in
/// nothing.
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

/// Seats that a gang gives up for another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MakesWay {
    /// Who gives them up.
    pub gang: GangId,
    /// Which. All it has if it is stopped.
    pub seats: Vec<Seat>,
    /// Why it is stopped; none if it goes on with the members it has left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopReason>,
}

/// What an order asks for, as decided by the planner.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OrderSpec {
    /// Its number.
    pub id: OrderId,
    /// The gang it is for.
    pub gang: GangId,
    /// The claims, numbered and with their offerings. Some may be under way already, or stopped: nodes that
    /// were asked for ahead of need, or for an order that failed since.
    pub claims: Vec<(ClaimId, OfferingRef)>,
    /// A seat for every member.
    pub reservations: Vec<Reservation>,
    /// When it is given up.
    pub deadline: Time,
    /// Seats that others give up for it, all of them or only those above their minimum.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<MakesWay>,
    /// What its nodes cost above the least there could be, in thousandths of that; never too little.
    #[serde(default)]
    pub gap: u32,
    /// The ways to start the gang that were compared when it was placed, this one among them.
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
    /// A node came up, or was changed, so that the gang may not run there.
    NodeUnsuitable(NodeIdx),
    /// The gang was cancelled.
    GangGone,
    /// Somebody who was to make way for it cannot any more.
    WayClosed,
    /// It could not be written down, so nothing of it was done.
    NotWritten,
    /// The gang fits on what has become free since: it starts there, and nobody is to blame.
    NotNeeded,
}

/// An order that is assembling. Complete and rolled-back orders leave the World at that moment.
#[derive(Clone, Debug)]
pub struct Order {
    /// As decided.
    pub spec: OrderSpec,
    /// When it was placed.
    pub placed: Time,
    /// Those who make way for it and have not left yet.
    pub after: Vec<MakesWay>,
    /// Failed claims that were replaced instead of giving all of it up.
    pub top_ups: u32,
    /// Seats it holds already: those on nodes that were here, and those on claims that are ready.
    pub held: Vec<Seat>,
}
