//! EASY backfilling: first come, first served, with a start time for the first gang that must wait.

use super::Discipline;

/// By age, with backfill in the same order.
pub(super) struct Easy;

impl Discipline for Easy {}
