//! Figures of disruptions of running gangs.

use serde::Serialize;

use crate::accounts::Disruptions;
use crate::report::summary::hours;

/// Preemptions, reclaims, moves, repairs and resizes.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct DisruptionFigures {
    /// Gangs stopped because one of higher priority needed their seats.
    pub preemptions: u64,
    /// Gangs stopped because another queue reclaimed what it had lent.
    pub reclaims: u64,
    /// Gangs stopped because their time slice ended.
    pub rotations: u64,
    /// Gangs stopped to run elsewhere.
    pub moves: u64,
    /// Gangs stopped because a node under them failed or was about to.
    pub repairs: u64,
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
    /// GPU-hours of unsaved work of evicted and moved gangs; part of all lost work.
    pub evicted_gpu_hours: f64,
    /// GPU-hours of pauses after restarts and resizes.
    pub paused_gpu_hours: f64,
}

impl DisruptionFigures {
    /// The figures; none without disruptions.
    pub(crate) fn of(disruptions: &Disruptions) -> Option<Self> {
        if disruptions.is_none() {
            return None;
        }
        let Disruptions {
            preempted,
            reclaimed,
            rotated,
            moved,
            repaired,
            grown,
            shrunk,
            reseated,
            declined,
            notices,
            evicted_gpu_ms,
            paused_gpu_ms,
        } = *disruptions;
        Some(Self {
            preemptions: preempted,
            reclaims: reclaimed,
            rotations: rotated,
            moves: moved,
            repairs: repaired,
            grown,
            shrunk,
            reseated,
            declined,
            notices,
            evicted_gpu_hours: hours(evicted_gpu_ms),
            paused_gpu_hours: hours(paused_gpu_ms),
        })
    }
    /// Gangs evicted: stopped although they could have gone on.
    pub fn evictions(&self) -> u64 {
        self.preemptions + self.reclaims + self.rotations + self.moves
    }
    /// Resizes of running gangs, declined ones included.
    pub fn resizes(&self) -> u64 {
        self.grown + self.shrunk + self.reseated
    }
}
