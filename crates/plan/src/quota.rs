//! Whether a queue's limits leave room for a gang.

use muster_core::gang::{Gang, Seat};
use muster_core::verdict::Blocker;
use smallvec::SmallVec;

use crate::scratch::Scratch;

/// A limit on the way up the queue tree that the gang's minimum would exceed: one that it exceeds even alone
/// if there is such a one, else the first.
pub(crate) fn over_limit(scratch: &Scratch<'_>, gang: &Gang) -> Option<Blocker> {
    let mut over = limits_exceeded(scratch, gang).into_iter();
    let first = over.next()?;
    let alone = |blocker: &Blocker| matches!(blocker, Blocker::QueueLimit { wants, limit, .. } if wants > limit);
    Some(if alone(&first) { first } else { over.find(alone).unwrap_or(first) })
}

fn limits_exceeded(scratch: &Scratch<'_>, gang: &Gang) -> SmallVec<[Blocker; 2]> {
    let mut over = SmallVec::new();
    let world = scratch.world;
    let members = || {
        gang.spec.roles.iter().zip(&gang.sigs).map(|(role, sig)| (world.signature(*sig), role.min))
    };
    let gpu_milli: u64 = members().map(|(sig, count)| sig.gpu_milli() * u64::from(count)).sum();
    for queue in world.queue_path(gang.queue) {
        let usage = scratch.queue_usage(queue);
        let listed = world.queue(queue);
        if let Some(limit) = listed.spec.limit.gpu_milli
            && gpu_milli > 0
            && usage.gpu_milli + gpu_milli > limit
        {
            let held = usage.gpu_milli;
            over.push(Blocker::QueueLimit { queue, resource: None, held, wants: gpu_milli, limit });
        }
        for (resource, limit) in &listed.limit {
            let wants: u64 = members()
                .map(|(sig, count)| sig.key.amounts.get(*resource) * u64::from(count))
                .sum();
            let held = usage.amounts.get(*resource);
            if wants > 0 && held + wants > *limit {
                let (resource, limit) = (Some(*resource), *limit);
                over.push(Blocker::QueueLimit { queue, resource, held, wants, limit });
            }
        }
    }
    over
}

/// Gives back what these seats of a gang count for in its queue.
pub(crate) fn refund(scratch: &mut Scratch<'_>, gang: &Gang, seats: &[Seat]) {
    for (role, sig) in gang.sigs.iter().enumerate() {
        let mine = seats.iter().filter(|seat| usize::from(seat.role) == role);
        scratch.refund(gang.queue, *sig, mine.map(|seat| u32::from(seat.members)).sum());
    }
}

/// Counts the gang's minimum against its queue.
pub(crate) fn charge(scratch: &mut Scratch<'_>, gang: &Gang) {
    for (role, sig) in gang.spec.roles.iter().zip(&gang.sigs) {
        scratch.charge(gang.queue, *sig, role.min);
    }
}
