//! Conservative backfilling: everybody who must wait has a start time, and nobody goes before who would put one
//! off.
//!
//! Start times are worked out anew in every cycle, oldest first. When somebody ends early, those ahead move up,
//! and a gang behind them may have to start a little later than it was told for that. So that a long queue can
//! be planned in time, only its first hundred hold start times.

use super::{Discipline, Overtaking};

/// By age, each around all those before it.
pub(super) struct Conservative;

/// Gangs that hold a start time at once.
const DEPTH: usize = 100;

impl Discipline for Conservative {
    fn overtaking(&self) -> Overtaking {
        Overtaking::Backfill(DEPTH)
    }
}
