//! Verdicts: the planner's answer for each gang, each cycle. Words are put to them only where they are shown.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::id::{GangId, OrderId, QueueIdx, ResourceIdx};
use crate::time::Time;

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
    /// Even with everything empty and every pool at its limit there is too little.
    NeverEnough {
        /// The role.
        role: u16,
        /// The most members that could ever fit.
        most: u32,
        /// Members needed.
        needs: u32,
    },
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
        /// When it is given up.
        deadline: Time,
    },
    /// It waits in the queue.
    Waiting {
        /// Its place among the waiting, 1 for the first.
        position: u32,
        /// Why.
        blockers: SmallVec<[Blocker; 1]>,
    },
    /// It is being stopped.
    Stopping,
    /// It can never run as it is.
    Impossible {
        /// Why.
        blockers: SmallVec<[Blocker; 1]>,
    },
}
