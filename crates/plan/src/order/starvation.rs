//! The starvation bound: when a gang has waited so long that no other gang may delay it any more.
//!
//! The bound is relative to what plain EASY would have done with the same gangs ([`muster_core::baseline`]), and
//! never less than an hour. A large gang is due earlier, because it takes longer until enough is free: at worst
//! everything that runs has to end first.

use muster_core::World;
use muster_core::gang::Gang;
use muster_core::queue::Usage;
use muster_core::time::{Span, Time};

/// The part of the baseline's longest wait after which a gang is due.
const PART: f64 = 0.82;
/// No gang is due before this, unless it is large.
const LEAST: Span = Span::hours(1);
/// The part of the longest gang's length by which one that needs everything is due earlier.
const LEAD: f64 = 1.0;
/// However large a gang is, it waits for this part of the bound.
const FLOOR: f64 = 0.1;
/// Longer estimates count as so long: one absurd duration must not make all gangs due at once.
const LONGEST: Span = Span::hours(24 * 7);

/// What decides when gangs are due, in one cycle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StarvationBound<'w> {
    total: &'w Usage,
    now: Time,
    bound: f64,
    lead: f64,
    /// How long until everything that runs has ended, if estimates are right.
    drained_after: Span,
}

impl<'w> StarvationBound<'w> {
    pub(crate) fn of(world: &'w World, now: Time) -> Self {
        let bound = (PART * world.baseline_wait().as_secs_f64()).max(LEAST.as_secs_f64());
        let last = world.estimated_ends().next_back().map_or(now, |(end, _)| end);
        Self {
            total: world.total(),
            now,
            bound,
            lead: LEAD * world.longest_estimate().min(LONGEST).as_secs_f64(),
            drained_after: last.since(now).min(LONGEST),
        }
    }

    /// When a gang is due: it has waited long enough, or it would miss its deadline otherwise.
    pub(crate) fn due(&self, gang: &Gang) -> Time {
        let early = self.lead * part_of(&gang.wants, self.total);
        let patience = (self.bound - early).max(FLOOR * self.bound);
        let due = gang.submitted + Span::from_secs_f64(patience);
        match latest_start(gang).filter(|latest| *latest >= self.now) {
            // A promise made then is kept in time, whatever is running. No gang is due before its submission: a near
            // deadline does not go before gangs that have waited for their turn.
            Some(latest) => due.min((latest - self.drained_after).max(gang.submitted)),
            // A deadline that is lost already puts no other gang off.
            None => due,
        }
    }
}

/// The last moment at which a gang can start and still be done by its deadline.
pub(crate) fn latest_start(gang: &Gang) -> Option<Time> {
    gang.spec.deadline.map(|deadline| deadline - gang.estimated_run_time())
}

/// The part of a cluster that something needs, by the resource it needs most of; at most all of it.
fn part_of(wants: &Usage, total: &Usage) -> f64 {
    let part = |want: u64, have: u64| want as f64 / (have.max(1)) as f64;
    let gpus = part(wants.gpu_milli, total.gpu_milli);
    let others = wants.amounts.iter().map(|(r, want)| part(want, total.amounts.get(r)));
    others.fold(gpus, f64::max).min(1.0)
}
