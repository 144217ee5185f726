//! Whether limits leave room for a gang: its queue's, those above it, and its user's in each of them.

use muster_core::World;
use muster_core::gang::{Gang, Seat};
use muster_core::id::SigIdx;
use muster_core::queue::Usage;
use muster_core::verdict::Blocker;
use smallvec::SmallVec;

use crate::scratch::Scratch;

/// A limit on the way up the queue tree that the gang's minimum would exceed: one that it exceeds even alone
/// if there is such a one, else the first.
pub(crate) fn over_limit(scratch: &Scratch<'_>, gang: &Gang) -> Option<Blocker> {
    if !scratch.world.has_limits() {
        return None;
    }
    let mut over = limits_exceeded(scratch, gang).into_iter();
    let first = over.next()?;
    Some(if exceeds_alone(&first) { first } else { over.find(exceeds_alone).unwrap_or(first) })
}

/// Whether a gang would exceed the limit even if nobody else held anything.
pub(crate) fn exceeds_alone(blocker: &Blocker) -> bool {
    match blocker {
        Blocker::QueueLimit { wants, limit, .. } | Blocker::UserLimit { wants, limit, .. } => {
            wants > limit
        }
        _ => false,
    }
}

/// Whether what a gang holds counts for a limit that `by` would exceed.
pub(crate) fn counts_for(world: &World, over: &Blocker, by: &Gang, gang: &Gang) -> bool {
    let below = |queue| world.queue_path(gang.queue).any(|above| above == queue);
    match over {
        Blocker::QueueLimit { queue, .. } => below(*queue),
        Blocker::UserLimit { queue, .. } => below(*queue) && gang.spec.user == by.spec.user,
        _ => false,
    }
}

fn limits_exceeded(scratch: &Scratch<'_>, gang: &Gang) -> SmallVec<[Blocker; 2]> {
    let mut over = SmallVec::new();
    for queue in scratch.world.queue_path(gang.queue) {
        let listed = scratch.world.queue(queue);
        if !listed.limit.is_empty()
            && let Some((resource, held, wants, limit)) =
                listed.limit.exceeded(scratch.queue_usage(queue), &gang.wants)
        {
            over.push(Blocker::QueueLimit { queue, resource, held, wants, limit });
        }
        if !listed.user_limit.is_empty()
            && let Some((resource, held, wants, limit)) =
                listed.user_limit.exceeded(&scratch.user_usage(queue, &gang.spec.user), &gang.wants)
        {
            over.push(Blocker::UserLimit { queue, resource, held, wants, limit });
        }
    }
    over
}

/// Whether limits leave room for so many more members of a gang.
pub(crate) fn allows(scratch: &Scratch<'_>, gang: &Gang, sig: SigIdx, count: u32) -> bool {
    if !scratch.world.has_limits() {
        return true;
    }
    let signature = scratch.world.signature(sig);
    let mut wants = Usage::default();
    wants.add(&signature.key.amounts, signature.gpu_milli(), count);
    scratch.world.queue_path(gang.queue).all(|queue| {
        let listed = scratch.world.queue(queue);
        let own = || scratch.user_usage(queue, &gang.spec.user);
        listed.limit.exceeded(scratch.queue_usage(queue), &wants).is_none()
            && (listed.user_limit.is_empty()
                || listed.user_limit.exceeded(&own(), &wants).is_none())
    })
}

/// Gives back what these seats of a gang count for in its queue.
pub(crate) fn refund_seats(scratch: &mut Scratch<'_>, gang: &Gang, seats: &[Seat]) {
    for (role, sig) in gang.sigs.iter().enumerate() {
        let mine = seats.iter().filter(|seat| usize::from(seat.role) == role);
        scratch.refund(gang, *sig, mine.map(|seat| u32::from(seat.members)).sum());
    }
}

/// Counts these seats of a gang in its queue.
pub(crate) fn charge_seats(scratch: &mut Scratch<'_>, gang: &Gang, seats: &[Seat]) {
    for (role, sig) in gang.sigs.iter().enumerate() {
        let mine = seats.iter().filter(|seat| usize::from(seat.role) == role);
        scratch.charge(gang, *sig, mine.map(|seat| u32::from(seat.members)).sum());
    }
}

/// Gives back what these seats of a gang count for in its queue, in a world that is looked at for room only:
/// where nobody has a limit there is nothing to count.
pub(crate) fn refund_later(scratch: &mut Scratch<'_>, gang: &Gang, seats: &[Seat]) {
    if scratch.world.has_limits() {
        refund_seats(scratch, gang, seats);
    }
}

/// Gives back what the gang's minimum counts for in its queue, in a world that is looked at for room only.
pub(crate) fn refund_minimum(scratch: &mut Scratch<'_>, gang: &Gang) {
    if scratch.world.has_limits() {
        for (role, sig) in gang.spec.roles.iter().zip(&gang.sigs) {
            scratch.refund(gang, *sig, role.min);
        }
    }
}

/// Counts the gang's minimum against its queue, in a world that is looked at for room only.
pub(crate) fn charge_later(scratch: &mut Scratch<'_>, gang: &Gang) {
    if scratch.world.has_limits() {
        charge(scratch, gang);
    }
}

/// Counts the gang's minimum against its queue.
pub(crate) fn charge(scratch: &mut Scratch<'_>, gang: &Gang) {
    for (role, sig) in gang.spec.roles.iter().zip(&gang.sigs) {
        scratch.charge(gang, *sig, role.min);
    }
}
