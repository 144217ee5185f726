//! Step 4a: give a gang that must wait a start time and the seats it will have then.
//!
//! The same placement code is run on the scratch as it would be later: running gangs end one after the
//! other, when they are believed to, until the gang fits.

use muster_core::gang::{Gang, Phase, Seat};
use muster_core::id::GangId;
use muster_core::time::Time;

use crate::cycle::Cycle;
use crate::place::{Fits, place};
use crate::scratch::Scratch;
use crate::{predict, quota};

/// A start time for one gang, and the world as it is believed to be then, with the gang in its seats.
pub(crate) struct Reservation<'w> {
    /// For whom.
    pub(crate) gang: GangId,
    /// When it starts at the latest, if beliefs hold.
    pub(crate) start: Time,
    /// Everything at that time.
    pub(crate) then: Scratch<'w>,
    /// Where it will sit.
    pub(crate) seats: Vec<Seat>,
}

/// Finds the earliest time at which the gang fits, if waiting is enough for that.
pub(crate) fn reserve<'w>(
    cycle: &mut Cycle<'w>,
    id: GangId,
    gang: &Gang,
) -> Option<Reservation<'w>> {
    // States on paper are numbered per scratch, so what fits is counted apart too.
    let mut fits = Fits::default();
    let mut then = cycle.scratch.later();
    let ends = believed_ends(cycle);
    for at_once in ends.chunk_by(|a, b| a.0 == b.0) {
        for (_, ending) in at_once {
            match ending {
                Ending::Running(id) => {
                    let ended = cycle.scratch.world.gang(*id).expect("it runs");
                    then.rise(ended, &ended.seats);
                    quota::refund(&mut then, ended, &ended.seats);
                }
                Ending::StartedNow(at) => {
                    let (id, seats) = &cycle.admitted[*at];
                    let ended = cycle.scratch.world.gang(*id).expect("it was just admitted");
                    then.rise(ended, seats);
                    quota::refund(&mut then, ended, seats);
                }
            }
        }
        if quota::over_limit(&then, gang).is_none()
            && let Ok(seats) = place(&mut then, &mut fits, gang)
        {
            return Some(Reservation { gang: id, start: at_once[0].0, then, seats });
        }
    }
    None
}

/// Something that frees seats.
enum Ending {
    /// A gang that runs.
    Running(GangId),
    /// A gang admitted in this cycle, by place in the cycle's list.
    StartedNow(usize),
}

/// Who is believed to end when, soonest first.
fn believed_ends(cycle: &Cycle<'_>) -> Vec<(Time, Ending)> {
    let world = cycle.scratch.world;
    let belief = cycle.policy.order.belief();
    let mut ends: Vec<(Time, GangId, Ending)> = Vec::new();
    for (id, gang) in world.gangs() {
        if matches!(gang.phase, Phase::Running { .. } | Phase::Admitted { .. }) {
            ends.push((predict::end(gang, belief, cycle.now), id, Ending::Running(id)));
        }
    }
    for (at, (id, _)) in cycle.admitted.iter().enumerate() {
        let gang = world.gang(*id).expect("it was just admitted");
        ends.push((predict::end(gang, belief, cycle.now), *id, Ending::StartedNow(at)));
    }
    ends.sort_by_key(|(end, id, _)| (*end, *id));
    ends.into_iter().map(|(end, _, ending)| (end, ending)).collect()
}
