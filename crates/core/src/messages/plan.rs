//! The plan: every decision of a cycle, as data. Only hosts act on it.

use serde::{Deserialize, Serialize};

use crate::id::{ClaimId, GangId, NodeIdx, OfferingRef, OrderId, PoolIdx};
use crate::messages::verdict::Verdict;
use crate::objects::gang::Seat;
use crate::objects::order::{OrderSpec, RollbackReason};
use crate::units::time::Time;

/// Why a running gang must stop, all members together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum StopReason {
    /// A node under it is gone; it is requeued.
    NodeLost(NodeIdx),
    /// It was cancelled.
    Cancelled,
    /// It fits on other nodes, and may be moved; it starts over there.
    Moved,
    /// A node under it is about to go; it is requeued.
    NodeFailing(NodeIdx),
    /// A gang of higher priority needs its seats.
    Preempted(GangId),
    /// It runs on lent capacity, and a gang of the queue that lent it reclaims it.
    Reclaimed(GangId),
    /// Its time slice is over, and another gang's begins.
    Rotated(GangId),
}

impl StopReason {
    /// The gang it is stopped for, if there is one.
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
    /// Whether it is an eviction: the gang could have kept running.
    pub fn is_eviction(self) -> bool {
        self.by().is_some() || self == StopReason::Moved
    }
    /// Whether the gang is notified before, and has its grace.
    pub fn is_told(self) -> bool {
        !matches!(self, StopReason::NodeLost(_))
    }
}

/// One action of a host. Actions are idempotent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Action {
    /// Start every member of a gang in its seat.
    Admit {
        /// The gang.
        gang: GangId,
        /// A seat for each member, role by role.
        seats: Vec<Seat>,
    },
    /// Request the nodes a gang lacks, all together.
    Order(OrderSpec),
    /// Roll back an order and everything reserved for it.
    RollBack {
        /// The order.
        order: OrderId,
        /// Why.
        reason: RollbackReason,
    },
    /// Replace one failed claim of an order instead of rolling the order back.
    TopUp {
        /// The order.
        order: OrderId,
        /// The claim that failed.
        lost: ClaimId,
        /// The claim that replaces it.
        claim: ClaimId,
        /// The offering of that claim.
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
    /// Order nodes ahead of need, or start stopped ones.
    Stock {
        /// The claims, numbered and with their offerings.
        claims: Vec<(ClaimId, OfferingRef)>,
    },
    /// Request a claim again after the provider asked to retry later.
    Retry {
        /// The claim.
        claim: ClaimId,
        /// The number of the attempt, so that a repeated action requests once.
        attempt: u32,
    },
    /// Stop the machine of an idle node; it is started again when it is needed.
    Park {
        /// The claim.
        claim: ClaimId,
    },
    /// Place no new members on a node, so that it can be released when the last one has left.
    Retire {
        /// The claim.
        claim: ClaimId,
    },
    /// Resize a running gang; never below its minimum.
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
    /// Release the node of a claim, or withdraw the claim.
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
    /// Wanted beside the nodes in use.
    pub buffer: u32,
    /// Wanted beside what orders wait for.
    pub spare: u32,
    /// Wanted in place of nodes in use that will be gone.
    #[serde(default)]
    pub replacing: u32,
    /// Wanted so that elastic gangs can grow.
    #[serde(default)]
    pub growth: u32,
    /// Wanted by a schedule.
    pub scheduled: u32,
    /// Wanted by the forecast; reported also where no nodes are kept for it.
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
    /// The verdict of every gang, in order of submission.
    pub verdicts: Vec<(GangId, Verdict)>,
    /// Gangs with a promised start, and the latest it is if estimates hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reservations: Vec<(GangId, Time)>,
    /// How many free nodes each pool should have now, where it should have any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<(PoolIdx, Target)>,
    /// When the next cycle is due if no event comes before.
    pub wake: Option<Time>,
}

impl Plan {
    /// All actions, group by group.
    pub fn actions(&self) -> impl Iterator<Item = &Action> {
        self.groups.iter().flat_map(|group| &group.actions)
    }
}
