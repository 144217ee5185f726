//! Conservative backfilling: everybody who must wait has a start time, and nobody's is ever put off.

use super::{Behind, Discipline};

/// By age, each around all those before it.
pub(super) struct Conservative;

impl Discipline for Conservative {
    fn behind(&self) -> Behind {
        Behind::Backfill(usize::MAX)
    }
}
