//! Step 3: wait or buy.
//!
//! A gang that does not say what an hour of delay costs is given nodes as soon as it lacks them. One that
//! does waits for others to end if that is cheaper. What it has waited already counts as a cost of waiting, so
//! a start that is put off again and again is bought in the end, and never for more than twice the least.

use muster_core::gang::Gang;
use muster_core::id::GangId;
use muster_core::verdict::Blocker;

use crate::backfill::Holes;
use crate::cycle::Cycle;
use crate::guard::latest_start;
use crate::provision::quote;

/// That a gang should rather wait than have nodes bought, if so.
pub(crate) fn cheaper_to_wait<'w>(
    cycle: &mut Cycle<'w>,
    id: GangId,
    gang: &Gang,
    holes: &Holes<'w>,
) -> Option<Blocker> {
    let hourly = gang.spec.cost_of_waiting?;
    let quote = quote(cycle, gang).ok()?;
    let start = holes.bookings.earliest(cycle, id, gang)?.start;
    let in_time = |at| latest_start(gang).is_none_or(|latest| at <= latest);
    if in_time(cycle.now + quote.boot) && !in_time(start) {
        return None;
    }
    let wait = hourly.per_hour_for(start.since(gang.submitted));
    let buy = quote.nodes + hourly.per_hour_for(quote.boot);
    (wait < buy).then_some(Blocker::CheaperToWait { start, wait, buy })
}
