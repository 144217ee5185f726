//! Verdicts: the planner's answer for each gang in each cycle. They are worded only where they are shown.

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
    /// Preemption was not searched for this gang: too many gangs ahead of it used the searches of the cycle.
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
    /// The queue, or one above it, is closed or no longer declared.
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
    /// It declares a value that the queue, or one above it, does not allow.
    NotAllowed {
        /// Which queue.
        queue: QueueIdx,
        /// The value.
        excess: Excess,
    },
    /// It is not preemptible, and would hold capacity that other queues are guaranteed.
    BeyondGuarantee {
        /// Its queue.
        queue: QueueIdx,
        /// Which resource; GPUs when absent.
        resource: Option<ResourceIdx>,
        /// Held by non-preemptible gangs of the queue and below it, in base units (thousandths of a device for GPUs).
        held: u64,
        /// Wanted on top.
        wants: u64,
        /// The queue's guarantee.
        guaranteed: u64,
    },
    /// Nodes could be bought, but the delay costs less than they do.
    CheaperToWait {
        /// When it is expected to start without them.
        start: Time,
        /// The cost of waiting until then.
        wait: Money,
        /// The cost of buying.
        buy: Money,
    },
    /// The gang excludes provisioning, or there is no pool.
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
    /// Suitable offerings failed a short while ago and are backed off.
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
    /// The hourly budget of a pool allows no more nodes.
    Budget {
        /// The pool.
        pool: PoolIdx,
        /// Its budget per hour.
        limit: Money,
        /// What is left of it now, or all of it for a gang that could never run.
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
        /// Whether pools offer nodes for its members: then their limits are the reason.
        #[serde(default)]
        offered: bool,
    },
}

impl Blocker {
    /// Whether the reason is that no pool offers the missing nodes.
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
    /// The options that would meet it.
    pub helps: Vec<Help>,
}

/// One change that would let a waiting gang start now: found by placing it in a World changed so.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Help {
    /// If its closeness were preferred and not required.
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
    /// At this priority, if these gangs were preempted.
    Priority {
        /// The lowest sufficient priority.
        priority: i32,
        /// The victims.
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

/// An option to start a gang that does not fit on free capacity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Way {
    /// Wait until others have ended.
    Wait,
    /// Buy nodes.
    Buy,
    /// Shrink elastic gangs.
    Shrink,
    /// Reclaim lent capacity.
    Reclaim,
    /// Take its time slice.
    Rotate,
    /// Preempt gangs of lower priority.
    Preempt,
    /// Move others elsewhere.
    Move,
}

/// An option that was evaluated, and its result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Considered {
    /// Which.
    pub way: Way,
    /// How long until the gang starts, if that can be said.
    pub delay: Option<Span>,
    /// Its cost: nodes, work that victims lose, and the delay.
    pub cost: Money,
    /// How many victims.
    pub others: u32,
    /// The work victims lose altogether, as the time of one GPU.
    pub lost: Span,
    /// Whether it was chosen.
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
        /// Nodes that were requested.
        total: u32,
        /// Victims that have not left yet.
        #[serde(default)]
        leaving: u32,
        /// When it is rolled back if it is not complete.
        deadline: Time,
        /// The options that were compared, when it was decided.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ways: Vec<Considered>,
    },
    /// It waits in the queue.
    Waiting {
        /// Its place among the waiting, 1 for the first.
        position: u32,
        /// Why.
        blockers: SmallVec<[Blocker; 1]>,
        /// The latest start, if it was promised one and estimates hold.
        start: Option<Time>,
        /// That its deadline cannot be met, if so.
        late: Option<Box<Late>>,
        /// Other options that were compared with waiting.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ways: Vec<Considered>,
    },
    /// It is being stopped.
    Stopping,
    /// It can never run as specified.
    Impossible {
        /// Why.
        blockers: SmallVec<[Blocker; 1]>,
    },
}

impl Verdict {
    /// Whether more nodes would help the gang, and no pool offers any: another provisioner might bring them. Not so
    /// for a gang that waits under a limit, or behind a gang that does.
    pub fn lacks_unoffered_nodes(&self) -> bool {
        let behind = |blocker: &Blocker| matches!(blocker, Blocker::Behind(_));
        match self {
            // A gang that does not fit delays no other gang, whichever gang is ahead of it.
            Self::Waiting { blockers, .. } => blockers.iter().any(Blocker::is_unoffered),
            Self::Impossible { blockers } => {
                blockers.iter().any(Blocker::is_unoffered) && !blockers.iter().any(behind)
            }
            Self::Admitted | Self::Running | Self::Provisioning { .. } | Self::Stopping => false,
        }
    }
}
