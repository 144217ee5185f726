//! How often gangs that ran were disturbed, in figures.

use serde::Serialize;

use crate::accounts::Disruptions;
use crate::report::summary::hours;

/// What taking back, growing, shrinking and healing came to.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct DisruptionFigures {
    /// Gangs stopped because one of higher priority needed their seats.
    pub preemptions: u64,
    /// Gangs stopped because what they ran on was lent, and wanted back.
    pub reclaims: u64,
    /// Gangs stopped because it was another's turn.
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
    /// Gangs that did not want the members they were offered.
    pub declined: u64,
    /// Nodes that were announced to go.
    pub notices: u64,
    /// GPU-hours of work not saved when gangs were stopped for others' sake or moved; part of all that was lost.
    pub evicted_gpu_hours: f64,
    /// GPU-hours in which gangs stood still because they had just been restarted or resized.
    pub paused_gpu_hours: f64,
}

impl DisruptionFigures {
    /// The figures; none where nobody was disturbed.
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
    /// Gangs stopped although they could have gone on.
    pub fn evictions(&self) -> u64 {
        self.preemptions + self.reclaims + self.rotations + self.moves
    }
    /// Times gangs that ran got other members, those included that they then did not want.
    pub fn resizes(&self) -> u64 {
        self.grown + self.shrunk + self.reseated
    }
}
