//! Expected starts: when gangs that wait are expected to start.
//!
//! Every gang that waits is given a start time, one after the other, as if no other gang came: an expectation, not a
//! promise. It is computed only for gangs with a deadline, and on request.

use std::collections::BTreeMap;

use muster_core::gang::Gang;
use muster_core::id::GangId;
use muster_core::time::{Span, Time};

use crate::cycle::Cycle;
use crate::reserve::Bookings;

/// Gangs that are considered before the rest of the queue is left out.
const LOOKED_AT: usize = 256;

/// When each of these starts, in the order they are served, if predictions hold and no other gang comes. A gang that
/// cannot start by waiting is left out, and so are all gangs beyond a bound.
pub(crate) fn expected_starts<'w>(
    cycle: &Cycle<'w>,
    mut bookings: Bookings<'w>,
    waiting: &[GangId],
) -> BTreeMap<GangId, Time> {
    let mut starts: BTreeMap<GangId, Time> =
        bookings.0.iter().map(|booking| (booking.gang, booking.start)).collect();
    for id in waiting.iter().take(LOOKED_AT) {
        if starts.contains_key(id) {
            continue;
        }
        let gang = cycle.scratch.world.gang(*id).expect("it waits");
        if let Some(booking) = bookings.earliest(cycle, *id, gang) {
            starts.insert(*id, booking.start);
            bookings.add(gang, booking);
        }
    }
    starts
}

/// By how much a gang that starts then misses its deadline.
pub(crate) fn late_by(gang: &Gang, start: Time) -> Option<Span> {
    let end = start + gang.estimated_run_time();
    gang.spec.deadline.filter(|deadline| end > *deadline).map(|deadline| end.since(deadline))
}
