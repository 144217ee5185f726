//! Quota: whether limits leave room for a gang. The limits are its queue's, those of queues above it, and its user's
//! in each.

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

/// Whether a gang would exceed the limit even if no other gang held anything.
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

/// Refunds the quota that these seats of a gang take in its queue.
pub(crate) fn refund_seats(scratch: &mut Scratch<'_>, gang: &Gang, seats: &[Seat]) {
    for (role, sig) in gang.sigs.iter().enumerate() {
        let mine = seats.iter().filter(|seat| usize::from(seat.role) == role);
        scratch.refund(gang, *sig, mine.map(|seat| u32::from(seat.members)).sum());
    }
}

/// Charges these seats of a gang to its queue.
pub(crate) fn charge_seats(scratch: &mut Scratch<'_>, gang: &Gang, seats: &[Seat]) {
    for (role, sig) in gang.sigs.iter().enumerate() {
        let mine = seats.iter().filter(|seat| usize::from(seat.role) == role);
        scratch.charge(gang, *sig, mine.map(|seat| u32::from(seat.members)).sum());
    }
}

/// Refunds these seats in an overlay that is used to find room only: where there are no limits nothing is counted.
pub(crate) fn refund_later(scratch: &mut Scratch<'_>, gang: &Gang, seats: &[Seat]) {
    if scratch.world.has_limits() {
        refund_seats(scratch, gang, seats);
    }
}

/// Refunds the gang's minimum in an overlay that is used to find room only.
pub(crate) fn refund_minimum(scratch: &mut Scratch<'_>, gang: &Gang) {
    if scratch.world.has_limits() {
        for (role, sig) in gang.spec.roles.iter().zip(&gang.sigs) {
            scratch.refund(gang, *sig, role.min);
        }
    }
}

/// Charges the gang's minimum in an overlay that is used to find room only.
pub(crate) fn charge_later(scratch: &mut Scratch<'_>, gang: &Gang) {
    if scratch.world.has_limits() {
        charge(scratch, gang);
    }
}

/// Charges the gang's minimum to its queue.
pub(crate) fn charge(scratch: &mut Scratch<'_>, gang: &Gang) {
    for (role, sig) in gang.spec.roles.iter().zip(&gang.sigs) {
        scratch.charge(gang, *sig, role.min);
    }
}
