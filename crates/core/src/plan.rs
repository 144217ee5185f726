//! Everything that was decided, as data. Only hosts act on it.

use serde::{Deserialize, Serialize};

use crate::gang::Seat;
use crate::id::{ClaimId, GangId, NodeIdx, OrderId};
use crate::order::{OrderSpec, RollbackReason};
use crate::time::Time;
use crate::verdict::Verdict;

/// Why a gang that has started must stop, all members together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum StopReason {
    /// A node under it is gone; it starts over from the queue.
    NodeLost(NodeIdx),
    /// It was cancelled.
    Cancelled,
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
    /// When something will be due although nothing happens before.
    pub wake: Option<Time>,
}

impl Plan {
    /// All actions, group by group.
    pub fn actions(&self) -> impl Iterator<Item = &Action> {
        self.groups.iter().flat_map(|group| &group.actions)
    }
}
