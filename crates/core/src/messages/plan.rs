//! Everything that was decided, as data. Only hosts act on it.

use serde::{Deserialize, Serialize};

use crate::id::{ClaimId, GangId, NodeIdx, OfferingRef, OrderId, PoolIdx};
use crate::messages::verdict::Verdict;
use crate::objects::gang::Seat;
use crate::objects::order::{OrderSpec, RollbackReason};
use crate::units::time::Time;

/// Why a gang that has started must stop, all members together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum StopReason {
    /// A node under it is gone; it starts over from the queue.
    NodeLost(NodeIdx),
    /// It was cancelled.
    Cancelled,
    /// It fits elsewhere, and may be moved; it starts over there.
    Moved,
    /// A node under it is about to go; it starts over from the queue.
    NodeFailing(NodeIdx),
    /// A gang of higher priority needs its seats.
    Preempted(GangId),
    /// It runs on what was lent, and a gang of the queue that lent it needs that.
    Reclaimed(GangId),
    /// Its slice of time is over, and it is another's turn.
    Rotated(GangId),
}

impl StopReason {
    /// For whose sake it is stopped, if for somebody's.
    pub fn by(self) -> Option<GangId> {
        match self {
            StopReason::Preempted(by) | StopReason::Reclaimed(by) | StopReason::Rotated(by) => {
                Some(by)
            }
            StopReason::NodeLost(_)
            | StopReason::NodeFailing(_)
            | StopReason::Cancelled
            | StopReason::Moved => None,
        }
    }
    /// Whether it could have gone on.
    pub fn is_eviction(self) -> bool {
        self.by().is_some() || self == StopReason::Moved
    }
    /// Whether the gang is told before, and has its grace.
    pub fn is_told(self) -> bool {
        !matches!(self, StopReason::NodeLost(_))
    }
}

/// One thing for a host to do. Doing it twice is doing it once.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Action {
    /// Start every member of a gang in its seat.
    Admit {
        /// The gang.
        gang: GangId,
        /// A seat for each member, role by role.
        seats: Vec<Seat>,
    },
    /// Ask for the nodes a gang lacks, all together.
    Order(OrderSpec),
    /// Give up an order and everything reserved for it.
    RollBack {
        /// The order.
        order: OrderId,
        /// Why.
        reason: RollbackReason,
    },
    /// Replace one failed claim of an order instead of giving all of it up.
    TopUp {
        /// The order.
        order: OrderId,
        /// The claim that failed.
        lost: ClaimId,
        /// What takes its place.
        claim: ClaimId,
        /// And what it asks for.
        offering: OfferingRef,
    },
    /// Let two orders exchange a node that is ready for one that is coming.
    Exchange {
        /// The order that gets the ready node.
        gets: OrderId,
        /// The claim it gives for it.
        coming: ClaimId,
        /// The order that waits for the other instead.
        gives: OrderId,
        /// The claim whose node is ready.
        ready: ClaimId,
    },
    /// Ask for nodes that nobody waits for yet, or wake stopped ones.
    Stock {
        /// The claims, numbered and with their offerings.
        claims: Vec<(ClaimId, OfferingRef)>,
    },
    /// Ask again for a claim that the provider put off.
    Retry {
        /// The claim.
        claim: ClaimId,
        /// For the how-manieth time, so that asking twice is asking once.
        attempt: u32,
    },
    /// Stop the machine of an unused node; it is woken when it is needed.
    Park {
        /// The claim.
        claim: ClaimId,
    },
    /// Put nobody new on a node, so that it can be given back when the last has left.
    Retire {
        /// The claim.
        claim: ClaimId,
    },
    /// Give a gang that runs more members, or fewer; never fewer than its minimum.
    Resize {
        /// The gang.
        gang: GangId,
        /// The seats it has afterwards, all of them.
        seats: Vec<Seat>,
    },
    /// Stop every member of a gang.
    Stop {
        /// The gang.
        gang: GangId,
        /// Why.
        reason: StopReason,
    },
    /// Give back the node a claim became, or withdraw the claim.
    Release {
        /// The claim.
        claim: ClaimId,
    },
}

/// How many free nodes a pool should have now, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Target {
    /// Free nodes wanted: the most that any reason asks for, and spares.
    pub free: u32,
    /// Stopped nodes wanted.
    pub stopped: u32,
    /// Wanted always.
    pub warm: u32,
    /// Wanted beside what is used.
    pub buffer: u32,
    /// Wanted beside what orders wait for.
    pub spare: u32,
    /// Wanted in place of nodes in use that will be gone.
    #[serde(default)]
    pub replacing: u32,
    /// Wanted so that elastic gangs can grow.
    #[serde(default)]
    pub growth: u32,
    /// Wanted because of the hour.
    pub scheduled: u32,
    /// Wanted because demand is expected; told also where nothing is kept for it.
    pub expected: u32,
}

/// Actions that are carried out together or not at all.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ActionGroup {
    /// The gang they are for; none for supply.
    pub gang: Option<GangId>,
    /// The actions, in order.
    pub actions: Vec<Action>,
}

/// One cycle's decisions.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Plan {
    /// What to do.
    pub groups: Vec<ActionGroup>,
    /// What became of every gang, in order of submission.
    pub verdicts: Vec<(GangId, Verdict)>,
    /// Gangs that were promised a start, and when it is at the latest if beliefs hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reservations: Vec<(GangId, Time)>,
    /// How many free nodes each pool should have now, where it should have any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<(PoolIdx, Target)>,
    /// When something will be due although nothing happens before.
    pub wake: Option<Time>,
}

impl Plan {
    /// All actions, group by group.
    pub fn actions(&self) -> impl Iterator<Item = &Action> {
        self.groups.iter().flat_map(|group| &group.actions)
    }
}
