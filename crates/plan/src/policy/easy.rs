//! EASY backfilling: first come, first served, with a start time for the first that must wait.

use crate::policy::parameters::Discipline;

/// By age, with backfill in the same order.
pub(crate) struct Easy;

impl Discipline for Easy {}
