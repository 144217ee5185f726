//! How often gangs that ran were disturbed, why, and what it cost.

use muster_core::Fact;
use muster_core::plan::StopReason;
use serde::Serialize;

/// Counts over a whole run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Disruptions {
    /// Gangs stopped because one of higher priority needed their seats.
    pub preempted: u64,
    /// Gangs stopped because what they ran on was lent, and wanted back.
    pub reclaimed: u64,
    /// Gangs stopped because it was another's turn.
    pub rotated: u64,
    /// Gangs stopped to run elsewhere.
    pub moved: u64,
    /// Gangs stopped because a node under them failed or was about to.
    pub repaired: u64,
    /// Gangs that got more members while they ran.
    pub grown: u64,
    /// Gangs that gave up members while they ran.
    pub shrunk: u64,
    /// Gangs that got as many members elsewhere while they ran.
    pub reseated: u64,
    /// Gangs that did not want the members they were offered.
    pub declined: u64,
    /// Nodes that were announced to go.
    pub notices: u64,
    /// GPU time of work that was not saved when gangs were stopped for others' sake or moved, in milliseconds.
    pub evicted_gpu_ms: u64,
    /// GPU time in which gangs stood still because they had just been restarted or resized, in milliseconds.
    pub paused_gpu_ms: u64,
}

impl Disruptions {
    pub(crate) fn note(&mut self, fact: &Fact) {
        let count = match fact {
            Fact::GangStopped { reason, .. } => match reason {
                StopReason::Preempted(_) => &mut self.preempted,
                StopReason::Reclaimed(_) => &mut self.reclaimed,
                StopReason::Rotated(_) => &mut self.rotated,
                StopReason::Moved => &mut self.moved,
                StopReason::NodeLost(_) | StopReason::NodeFailing(_) => &mut self.repaired,
                StopReason::Cancelled => return,
            },
            Fact::GangResizing { from, to, .. } if from < to => &mut self.grown,
            Fact::GangResizing { from, to, .. } if from > to => &mut self.shrunk,
            Fact::GangResizing { .. } => &mut self.reseated,
            Fact::ResizeDeclined { .. } => &mut self.declined,
            Fact::NodeNoticed { by, .. } if *by < muster_core::time::Time::MAX => &mut self.notices,
            _ => return,
        };
        *count += 1;
    }
    /// Gangs stopped although they could have gone on.
    pub fn evictions(&self) -> u64 {
        self.preempted + self.reclaimed + self.rotated + self.moved
    }
    /// Times gangs that ran got other members, those included that they then did not want.
    pub fn resizes(&self) -> u64 {
        self.grown + self.shrunk + self.reseated
    }
    /// Whether nobody was disturbed at all.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}
