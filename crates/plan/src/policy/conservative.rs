//! Conservative backfilling: every gang that must wait has a start time, and no gang goes before that would delay
//! one.
//!
//! Start times are computed anew in every cycle, oldest first. When a gang ends early, gangs ahead move up, and a
//! gang behind them may have to start a little later than it was told for that. So that a long queue can be planned
//! in time, only its first hundred hold start times.

use super::{Discipline, Overtaking};

/// By age, each around all gangs before it.
pub(super) struct Conservative;

/// Gangs that hold a start time at once.
const DEPTH: usize = 100;

impl Discipline for Conservative {
    fn overtaking(&self) -> Overtaking {
        Overtaking::Backfill(DEPTH)
    }
}
