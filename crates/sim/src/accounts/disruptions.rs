//! Disruptions of running gangs: how often, why, and what they cost.

use muster_core::Fact;
use muster_core::plan::StopReason;
use serde::Serialize;

/// Counts over a whole run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Disruptions {
    /// Gangs stopped because one of higher priority needed their seats.
    pub preempted: u64,
    /// Gangs stopped because another queue reclaimed what it had lent.
    pub reclaimed: u64,
    /// Gangs stopped because their time slice ended.
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
    /// Gangs that declined the members they were offered.
    pub declined: u64,
    /// Nodes with notice of termination.
    pub notices: u64,
    /// GPU time of unsaved work of evicted and moved gangs, in milliseconds.
    pub evicted_gpu_ms: u64,
    /// GPU time of pauses after restarts and resizes, in milliseconds.
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
    /// Gangs evicted: stopped although they could have gone on.
    pub fn evictions(&self) -> u64 {
        self.preempted + self.reclaimed + self.rotated + self.moved
    }
    /// Resizes of running gangs, declined ones included.
    pub fn resizes(&self) -> u64 {
        self.grown + self.shrunk + self.reseated
    }
    /// Whether no gang was disrupted.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}
