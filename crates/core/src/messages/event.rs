//! Events: everything that can change a World, as data. A host turns its observations into these.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::history::health::Record;
use crate::history::remembered::Remembered;
use crate::id::{ClaimId, GangId, NodeIdx, OfferingRef};
use crate::messages::plan::Action;
use crate::objects::gang::GangSpec;
use crate::objects::node::NodeSpec;
use crate::objects::order::{ClaimFailure, OrderSpec};
use crate::objects::pool::PoolSpec;
use crate::objects::proactive::PoolForecast;
use crate::objects::queue::QueueSpec;
use crate::units::time::Time;

/// One change of the World.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Event {
    /// The host has listed everything; decisions may begin.
    Synced,
    /// Nothing changed but the time.
    Tick,
    /// The Unix time of the host's epoch, in milliseconds; 0 on live hosts. Only calendars need it.
    Epoch(i64),
    /// Orders and claims are numbered from here on, so that names from before a restart are not used again.
    NumbersFrom(u32),
    /// A queue was created or changed.
    QueueSet(QueueSpec),
    /// A queue is no longer declared: it accepts no new gangs, its waiting gangs stay waiting, and its running gangs
    /// keep running.
    QueueGone(Arc<str>),
    /// A pool was created or changed.
    PoolSet(PoolSpec),
    /// A gang was submitted.
    GangSubmitted(GangSpec),
    /// A gang was cancelled.
    GangCancelled(GangId),
    /// A gang's spec was changed by its owner: the gang of that name has this spec from now on, and keeps its place.
    GangChanged(GangSpec),
    /// A gang's members were observed on these nodes, whatever was decided: found after a restart, or some of them are
    /// done.
    GangFound {
        /// The gang.
        gang: GangId,
        /// Since when, if it was not known to run.
        since: Time,
        /// Where all members that are not done run.
        sitting: Vec<RoleSeats>,
    },
    /// Seats of a running gang are free again: their members are gone or leaving, and its owner does not want them
    /// replaced. Refused where too few would be left.
    SeatsGivenBack {
        /// The gang.
        gang: GangId,
        /// The seats given back.
        seats: Vec<RoleSeats>,
    },
    /// Seats that a gang gives up first when it has to shrink, replacing those reported before: their members are
    /// gone, leaving, or no longer wanted by the gang's owner.
    SeatsSpare {
        /// The gang.
        gang: GangId,
        /// The seats.
        seats: Vec<RoleSeats>,
    },
    /// A gang has waited for longer than this World knows: it keeps its place, and its wait counts.
    GangWaits {
        /// The gang.
        gang: GangId,
        /// When it was submitted.
        submitted: Time,
        /// Since when it has its present place in the queue.
        since: Time,
    },
    /// An order was found that an earlier process placed: it continues from where it is.
    OrderFound {
        /// The order as decided. Devices on nodes that are here may be taken by now.
        order: OrderSpec,
        /// When.
        placed: Time,
        /// Failed claims that were replaced so far.
        top_ups: u32,
    },
    /// A gang that has seats has other members than they were taken for: the gang of that name has this spec from now
    /// on, and its members have these seats, those still to come included.
    GangTurnedOut {
        /// Its spec.
        spec: GangSpec,
        /// Its seats, replacing those it had: on capacity of its own, or on free capacity.
        sitting: Vec<RoleSeats>,
    },
    /// A claim was found that is not known. It is unassigned.
    ClaimFound {
        /// Its number.
        claim: ClaimId,
        /// Its offering.
        offering: OfferingRef,
        /// When it was requested: timeouts and age count from there.
        asked: Time,
        /// When the provider started its machine, if it has.
        launched: Option<Time>,
    },
    /// The stored record of an offering: it is avoided, or trusted, as before.
    OfferingFound {
        /// The offering.
        offering: OfferingRef,
        /// The stored record.
        was: Record,
    },
    /// So many orders of a waiting gang failed before this World knew it.
    OrdersFailed {
        /// The gang.
        gang: GangId,
        /// How many, since the last one that succeeded.
        orders: u32,
        /// When the last one failed.
        last: Time,
    },
    /// A node was observed, for the first time or again.
    NodeSeen(NodeSpec),
    /// A node is idle since an instant before it was first observed, as stored earlier.
    NodeIdle {
        /// Its name.
        name: Arc<str>,
        /// Since when.
        since: Time,
    },
    /// A node is gone.
    NodeGone(Arc<str>),
    /// A node will be gone at some instant, or is not to be used from now on.
    NodeNotice {
        /// Its name.
        name: Arc<str>,
        /// When it will be gone.
        by: Time,
    },
    /// The provider has started a machine for a claim.
    ClaimLaunched(ClaimId),
    /// A claim's machine is stopped, and its node gone with it.
    ClaimStopped(ClaimId),
    /// A claim will not become a node.
    ClaimFailed(ClaimId, ClaimFailure),
    /// A claim is gone: neither machine nor cost is left.
    ClaimGone(ClaimId),
    /// Every member of an admitted gang runs.
    GangStarted(GangId),
    /// A gang has the members of its last resize.
    GangResized(GangId),
    /// A gang declined more members; it keeps those it had.
    ResizeDeclined(GangId),
    /// Measured scaling efficiency of a gang: what twice the members bring of twice the speed, in thousandths.
    GangMeasured(GangId, u16),
    /// Every member of a gang that was stopped has stopped.
    GangStopped(GangId),
    /// A gang has finished, or failed for good.
    GangEnded(GangId),
    /// The learned state of the World before this one, which cannot be observed: given once queues and pools are
    /// known.
    Remembered(Box<Remembered>),
    /// The forecast of a pool.
    Expected {
        /// The pool.
        pool: Arc<str>,
        /// Free nodes wanted over time.
        outlook: PoolForecast,
    },
    /// A decision of the planner that the host is about to carry out.
    Decided(Action),
}

impl Event {
    /// Whether it may change the record of an offering.
    pub fn tells_of_offerings(&self) -> bool {
        matches!(
            self,
            Self::ClaimFailed(..)
                | Self::Decided(
                    Action::RollBack { .. } | Action::TopUp { .. } | Action::Release { .. }
                )
        )
    }
}

/// Members of a role that a host observes on a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RoleSeats {
    /// Their role, by place in the gang's list.
    pub role: u16,
    /// Their node.
    pub node: NodeIdx,
    /// How many members.
    pub members: u16,
}

/// Why an event could not be applied. The World is unchanged then.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// A gang, or the parent of a queue, names a queue that is not declared.
    #[error("queue `{0}` does not exist")]
    UnknownQueue(Arc<str>),
    /// A queue would become its own ancestor.
    #[error("queue `{0}` would be its own ancestor")]
    QueueCycle(Arc<str>),
    /// A gang of that name exists.
    #[error("gang `{0}` exists already")]
    DuplicateGang(Arc<str>),
    /// A gang requires a topology level that does not exist.
    #[error("topology level `{0}` does not exist")]
    UnknownLevel(Arc<str>),
    /// A gang without roles, a role without members, or min above max.
    #[error("gang `{0}` has a role without members, or no role at all")]
    EmptyGang(Arc<str>),
    /// All members together request more than can be counted.
    #[error("gang `{0}` asks for too much `{1}` to count")]
    TooMuch(Arc<str>, Arc<str>),
    /// A node with more devices than are supported.
    #[error("node `{0}` has more GPUs than Muster can tell apart")]
    TooManyDevices(Arc<str>),
    /// No such gang.
    #[error("gang {0:?} does not exist")]
    UnknownGang(GangId),
    /// No gang of that name.
    #[error("gang `{0}` does not exist")]
    NoSuchGang(Arc<str>),
    /// No such claim.
    #[error("claim {0:?} does not exist")]
    UnknownClaim(ClaimId),
    /// No such pool.
    #[error("pool `{0}` does not exist")]
    UnknownPool(Arc<str>),
    /// A pool's schedule is not a valid calendar.
    #[error("pool `{0}`: schedule `{1}` {2}")]
    NoCalendar(Arc<str>, Arc<str>, crate::units::calendar::CalendarError),
    /// No such node.
    #[error("node `{0}` does not exist")]
    UnknownNode(Arc<str>),
    /// A decision that no longer fits the present state.
    #[error("{0}")]
    Stale(Stale),
}

/// How a decision no longer fits the present state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Stale {
    /// The gang is not in the phase the decision assumes.
    #[error("the gang has moved on")]
    Gang,
    /// A seat is no longer free, or its node is not usable.
    #[error("a seat is no longer free")]
    Seat,
    /// Too few members of a role.
    #[error("fewer members than the role's minimum")]
    BelowMin,
    /// The order is no longer assembling.
    #[error("the order is no longer assembling")]
    Order,
    /// A pool or offering has no room left.
    #[error("the pool has no room left")]
    Pool,
    /// The queue's limit would be exceeded.
    #[error("the queue's limit would be exceeded")]
    Queue,
    /// The node is in use or the claim belongs to an order.
    #[error("the node is in use")]
    InUse,
}

impl From<Stale> for Refusal {
    fn from(stale: Stale) -> Self {
        Refusal::Stale(stale)
    }
}
