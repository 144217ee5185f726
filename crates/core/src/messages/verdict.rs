//! Verdicts: the planner's answer for each gang, each cycle. Words are put to them only where they are shown.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::id::{GangId, NodeIdx, OfferingRef, OrderId, PoolIdx, QueueIdx, ResourceIdx};
use crate::objects::allowed::Excess;
use crate::units::money::Money;
use crate::units::time::{Span, Time};

/// One reason why a gang does not start now.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Blocker {
    /// Too few members of a role fit on what is free.
    NoFreeCapacity {
        /// The role, by place in the gang's list.
        role: u16,
        /// Members that fit, in the best domain if the gang must stay within one.
        fits: u32,
        /// Members needed.
        needs: u32,
    },
    /// Each role would fit, but not all of them together.
    RolesCompete,
    /// A gang ahead of it waits for the same nodes.
    Behind(GangId),
    /// The cycle's search budget was spent on gangs ahead of it.
    NotConsidered,
    /// Whether others could make way was looked for on behalf of too many gangs ahead of it.
    SearchSpent,
    /// The queue, or one above it, would exceed its limit.
    QueueLimit {
        /// Which queue.
        queue: QueueIdx,
        /// Which resource; GPUs when absent.
        resource: Option<ResourceIdx>,
        /// Held now, in base units (thousandths of a device for GPUs).
        held: u64,
        /// Wanted on top.
        wants: u64,
        /// The limit.
        limit: u64,
    },
    /// The queue, or one above it, is closed, or nobody declares it any more.
    QueueClosed {
        /// Which queue.
        queue: QueueIdx,
    },
    /// Its user would hold more of the queue, or of one above it, than one user may.
    UserLimit {
        /// Which queue.
        queue: QueueIdx,
        /// Which resource; GPUs when absent.
        resource: Option<ResourceIdx>,
        /// Held by the user now, in base units (thousandths of a device for GPUs).
        held: u64,
        /// Wanted on top.
        wants: u64,
        /// The limit.
        limit: u64,
    },
    /// It declares what the queue, or one above it, does not allow.
    NotAllowed {
        /// Which queue.
        queue: QueueIdx,
        /// What is too much.
        excess: Excess,
    },
    /// It cannot be preempted, and would hold what other queues can count on.
    BeyondGuarantee {
        /// Its queue.
        queue: QueueIdx,
        /// Which resource; GPUs when absent.
        resource: Option<ResourceIdx>,
        /// Held by gangs of the queue and below it that cannot be preempted either, in base units (thousandths of a
        /// device for GPUs).
        held: u64,
        /// Wanted on top.
        wants: u64,
        /// What the queue can count on.
        guaranteed: u64,
    },
    /// Nodes could be bought, but what the delay costs is less than what they cost.
    CheaperToWait {
        /// When it is expected to start without them.
        start: Time,
        /// What waiting will have cost by then.
        wait: Money,
        /// What buying would cost.
        buy: Money,
    },
    /// The gang says it runs on what is there, or no pool exists.
    ProvisioningOff,
    /// No offering suits a role under its constraints and the queue's tiers.
    NoOffering {
        /// The role.
        role: u16,
    },
    /// Suitable offerings exist, but limits or budgets leave too little room.
    PoolsFull {
        /// Nodes that could still be claimed of the roomiest suitable offering.
        room: u32,
    },
    /// Suitable offerings failed a short while ago and are left alone.
    OfferingsAvoided {
        /// Until when.
        until: Time,
    },
    /// Too many orders for this gang failed in a row.
    CoolingOff {
        /// Until when.
        until: Time,
    },
    /// A member of this role fits on no node and on no offering, however empty.
    RoleFitsNowhere {
        /// The role.
        role: u16,
    },
    /// It is the hourly budget of a pool that allows no more nodes.
    Budget {
        /// The pool.
        pool: PoolIdx,
        /// Its budget per hour.
        limit: Money,
        /// What is left of it now, or of all of it for a gang that could never run.
        left: Money,
    },
    /// Even with everything empty and every pool at its limit there is too little.
    NeverEnough {
        /// The role.
        role: u16,
        /// The most members that could ever fit.
        most: u32,
        /// Members needed.
        needs: u32,
        /// Whether pools offer nodes that take its members: it is their limits then.
        #[serde(default)]
        offered: bool,
    },
}

impl Blocker {
    /// Whether it is that no pool offers the nodes that are missing.
    pub fn is_unoffered(&self) -> bool {
        match self {
            Self::ProvisioningOff | Self::NoOffering { .. } | Self::RoleFitsNowhere { .. } => true,
            Self::NeverEnough { offered, .. } => !offered,
            _ => false,
        }
    }
}

/// A deadline that cannot be met as things stand.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Late {
    /// By how much it is missed.
    pub by: Span,
    /// What would make it possible.
    pub helps: Vec<Help>,
}

/// One thing that would let a gang start now that does not: found by placing it in a world changed so.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Help {
    /// If its members only preferred to be close together.
    Closeness,
    /// With this many more nodes of a pool's offering.
    Nodes {
        /// Which.
        offering: OfferingRef,
        /// How many.
        count: u32,
    },
    /// With this many more nodes like one that is here.
    NodesLike {
        /// One of them.
        node: NodeIdx,
        /// How many more.
        count: u32,
    },
    /// At this priority, if these gangs made way.
    Priority {
        /// The lowest that would do.
        priority: i32,
        /// Who would have to stop.
        instead_of: Vec<GangId>,
    },
    /// With this many members in one of its roles.
    Members {
        /// The role, by place in the gang's list.
        role: u16,
        /// How many would fit.
        count: u32,
    },
}

/// A way to start a gang that does not fit on what is free.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Way {
    /// Wait until others have ended.
    Wait,
    /// Buy nodes.
    Buy,
    /// Have others go on with fewer members.
    Shrink,
    /// Take back what was lent.
    Reclaim,
    /// Have its turn.
    Rotate,
    /// Stop others of lower priority.
    Preempt,
    /// Move others elsewhere.
    Move,
}

/// A way that was looked at, and what it would come to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Considered {
    /// Which.
    pub way: Way,
    /// How long until the gang starts, if that can be said.
    pub delay: Option<Span>,
    /// What it costs: nodes, work that others lose, and what the delay costs.
    pub cost: Money,
    /// How many others make way.
    pub others: u32,
    /// What they lose altogether, as the time of one GPU.
    pub lost: Span,
    /// Whether it was taken.
    pub chosen: bool,
}

/// The planner's answer for one gang.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Verdict {
    /// Every member has a seat and starts now.
    Admitted,
    /// Every member runs, or is being started.
    Running,
    /// Its order assembles.
    Provisioning {
        /// The order.
        order: OrderId,
        /// Nodes that are ready.
        ready: u32,
        /// Nodes that were asked for.
        total: u32,
        /// Gangs that still make way for it.
        #[serde(default)]
        leaving: u32,
        /// When it is given up.
        deadline: Time,
        /// The ways that were compared, when it was decided.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ways: Vec<Considered>,
    },
    /// It waits in the queue.
    Waiting {
        /// Its place among the waiting, 1 for the first.
        position: u32,
        /// Why.
        blockers: SmallVec<[Blocker; 1]>,
        /// When it starts at the latest, if it was promised a start and beliefs hold.
        start: Option<Time>,
        /// That it cannot be done by its deadline, if so.
        late: Option<Box<Late>>,
        /// Other ways that were compared with waiting.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ways: Vec<Considered>,
    },
    /// It is being stopped.
    Stopping,
    /// It can never run as it is.
    Impossible {
        /// Why.
        blockers: SmallVec<[Blocker; 1]>,
    },
}

impl Verdict {
    /// Whether more nodes would help the gang, and no pool offers any: somebody else might bring them. Not so for who
    /// waits for room under a limit, or behind somebody who does.
    pub fn lacks_unoffered_nodes(&self) -> bool {
        let behind = |blocker: &Blocker| matches!(blocker, Blocker::Behind(_));
        match self {
            // Who does not fit is in the way of nobody's turn, whoever is ahead of it.
            Self::Waiting { blockers, .. } => blockers.iter().any(Blocker::is_unoffered),
            Self::Impossible { blockers } => {
                blockers.iter().any(Blocker::is_unoffered) && !blockers.iter().any(behind)
            }
            Self::Admitted | Self::Running | Self::Provisioning { .. } | Self::Stopping => false,
        }
    }
}
