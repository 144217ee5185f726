//! Other members for a run that goes on: whoever stays is told, whoever goes has its grace, whoever comes waits at a gate of
//! its own until those who go are gone.

use std::collections::{BTreeMap, BTreeSet};

use muster_core::gang::Seat;
use rustix::process::Pid;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::plan::MemberPlan;

/// What becomes of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Change {
    /// Everybody it is to have, by number, and where each sits. A number is given once in a run.
    pub members: Vec<(u32, Seat)>,
    /// The number that comes next.
    pub next: u32,
    /// Those among them that are to be started.
    pub join: Vec<MemberPlan>,
    /// The signal for those who stay.
    pub signal: i32,
    /// The signal for those who go.
    pub stop_signal: i32,
    /// How long those have, in milliseconds.
    pub grace_ms: u64,
    /// What `MUSTER_WORLD` says from now on.
    pub world: String,
    /// What `MUSTER_HOSTFILE` says.
    pub hostfile: String,
}

/// A change while somebody has yet to go.
#[derive(Debug)]
pub(super) struct Changing {
    pub(super) change: Change,
    pub(super) kill_at: Option<Instant>,
}

impl Change {
    /// Those that live and are not to.
    pub(super) fn going(&self, left: &BTreeMap<u32, Pid>) -> BTreeSet<u32> {
        let stays = |rank: &u32| self.members.iter().any(|(number, _)| number == rank);
        left.keys().copied().filter(|rank| !stays(rank)).collect()
    }
}
