//! Everything that can happen to a World, as data. A host turns what it observes into these.

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
use crate::objects::proactive::Outlook;
use crate::objects::queue::QueueSpec;
use crate::units::time::Time;

/// One change of the World.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Event {
    /// The host has reported everything there is; decisions may begin.
    Synced,
    /// Nothing changed but the time.
    Tick,
    /// What Unix time it is at the host's epoch, in milliseconds; 0 on live hosts. Only calendars ask.
    Epoch(i64),
    /// Orders and claims are numbered from here on, so that names of those before a restart do not come back.
    NumbersFrom(u32),
    /// A queue was written or rewritten.
    QueueSet(QueueSpec),
    /// Nobody declares a queue any more: it takes nobody new, those in it that wait go on waiting, and those that run go
    /// on running.
    QueueGone(Arc<str>),
    /// A pool was written or rewritten.
    PoolSet(PoolSpec),
    /// A gang wants to run.
    GangSubmitted(GangSpec),
    /// A gang is no longer wanted.
    GangCancelled(GangId),
    /// A gang's submitter has thought again: the gang of that name is like this from now on, and keeps its place.
    GangChanged(GangSpec),
    /// A gang's members sit here, whatever was decided: found after a restart, or some of them are done.
    GangFound {
        /// The gang.
        gang: GangId,
        /// Since when, if it was not known to run.
        since: Time,
        /// Where all that are not done sit.
        sitting: Vec<Sitting>,
    },
    /// Seats of a gang that runs are free again: their members are gone or going, and its owner wants no others in their
    /// place. Refused where too few would be left.
    SeatsGivenBack {
        /// The gang.
        gang: GangId,
        /// What it gives back.
        seats: Vec<Sitting>,
    },
    /// Seats that go first when a gang has to give some up, in place of those told before: their members are gone, leaving, or
    /// no longer wanted by the gang's owner.
    SeatsSpare {
        /// The gang.
        gang: GangId,
        /// Which ones.
        seats: Vec<Sitting>,
    },
    /// A gang waits for longer than it is known here: it keeps its place, and what it has waited counts.
    GangWaits {
        /// The gang.
        gang: GangId,
        /// When it was submitted.
        submitted: Time,
        /// Since when it stands where it does in line.
        since: Time,
    },
    /// An order was found that whoever decided before had placed: it goes on from where it is.
    OrderFound {
        /// What was decided. Devices on nodes that are here may be others by now.
        order: OrderSpec,
        /// When.
        placed: Time,
        /// Failed claims that were replaced so far.
        top_ups: u32,
    },
    /// A gang that has seats is made of other members than they were taken for: the gang of that name is like this from
    /// now on, and its members sit here, those who are yet to come among them.
    GangTurnedOut {
        /// What it is.
        spec: GangSpec,
        /// Its seats, in place of those it had: on room that was its own, or is free.
        sitting: Vec<Sitting>,
    },
    /// A claim was found that is not known, for nobody.
    ClaimFound {
        /// Its number.
        claim: ClaimId,
        /// What was asked for.
        offering: OfferingRef,
        /// When it was asked for: how long it may take, and how old it may get, counts from there.
        asked: Time,
        /// When the provider started its machine, if it has.
        launched: Option<Time>,
    },
    /// What whoever decided before has written down of an offering: it is avoided, or trusted, as it was.
    OfferingFound {
        /// The offering.
        offering: OfferingRef,
        /// What was written down of it.
        was: Record,
    },
    /// So many orders of a gang that waits have failed before it is known here.
    OrdersFailed {
        /// The gang.
        gang: GangId,
        /// How many, since the last one that did not.
        orders: u32,
        /// When the last one did.
        last: Time,
    },
    /// A node was seen, for the first time or again.
    NodeSeen(NodeSpec),
    /// Nobody has used a node since an instant that is before it was seen: somebody wrote that down.
    NodeIdle {
        /// Its name.
        name: Arc<str>,
        /// Since when.
        since: Time,
    },
    /// A node is no more.
    NodeGone(Arc<str>),
    /// A node will be gone at some instant, or is not to be trusted from now on.
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
    /// Nothing is left of a claim, neither node nor bill.
    ClaimGone(ClaimId),
    /// Every member of an admitted gang runs.
    GangStarted(GangId),
    /// A gang has the members it was told to have.
    GangResized(GangId),
    /// A gang does not want more members; it keeps those it had.
    ResizeDeclined(GangId),
    /// What twice the members bring a gang of twice the speed, in thousandths, as measured.
    GangMeasured(GangId, u16),
    /// Every member of a gang that was told to stop has stopped.
    GangStopped(GangId),
    /// A gang has done its work, or failed for good.
    GangEnded(GangId),
    /// What the World before this one knew, and nobody can see: told once queues and pools are known.
    Remembered(Box<Remembered>),
    /// A forecaster says what to expect of a pool.
    Expected {
        /// The pool.
        pool: Arc<str>,
        /// Free nodes wanted over time.
        outlook: Outlook,
    },
    /// The planner decided this and the host is about to do it.
    Decided(Action),
}

impl Event {
    /// Whether it may change what is remembered of an offering.
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

/// Members of a role that a host sees on a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Sitting {
    /// Their role, by place in the gang's list.
    pub role: u16,
    /// Their node.
    pub node: NodeIdx,
    /// How many they are.
    pub members: u16,
}

/// Why an event could not be applied. The World is unchanged then.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// A gang, or the parent of a queue, names a queue nobody declared.
    #[error("queue `{0}` does not exist")]
    UnknownQueue(Arc<str>),
    /// A queue would become its own ancestor.
    #[error("queue `{0}` would be its own ancestor")]
    QueueCycle(Arc<str>),
    /// A gang of that name is still there.
    #[error("gang `{0}` exists already")]
    DuplicateGang(Arc<str>),
    /// A gang asks to stay within a level the topology does not have.
    #[error("topology level `{0}` does not exist")]
    UnknownLevel(Arc<str>),
    /// A gang without roles, a role without members, or min above max.
    #[error("gang `{0}` has a role without members, or no role at all")]
    EmptyGang(Arc<str>),
    /// All members together ask for more than can be counted.
    #[error("gang `{0}` asks for too much `{1}` to count")]
    TooMuch(Arc<str>, Arc<str>),
    /// A node with more devices than can be told apart.
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
    /// A pool's schedule is no calendar.
    #[error("pool `{0}`: schedule `{1}` {2}")]
    NoCalendar(Arc<str>, Arc<str>, crate::units::calendar::CalendarError),
    /// No such node.
    #[error("node `{0}` does not exist")]
    UnknownNode(Arc<str>),
    /// A decision that no longer fits the present.
    #[error("{0}")]
    Stale(Stale),
}

/// How a decision no longer fits the present.
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
