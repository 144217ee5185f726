//! Whether a queue's limits leave room for a gang.

use muster_core::gang::Gang;
use muster_core::verdict::Blocker;

use crate::scratch::Scratch;

/// The first limit on the way up the queue tree that the gang's minimum would exceed.
pub(crate) fn over_limit(scratch: &Scratch<'_>, gang: &Gang) -> Option<Blocker> {
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
            return Some(Blocker::QueueLimit {
                queue,
                resource: None,
                held,
                wants: gpu_milli,
                limit,
            });
        }
        for (resource, limit) in &listed.limit {
            let wants: u64 = members()
                .map(|(sig, count)| sig.key.amounts.get(*resource) * u64::from(count))
                .sum();
            let held = usage.amounts.get(*resource);
            if wants > 0 && held + wants > *limit {
                let (resource, limit) = (Some(*resource), *limit);
                return Some(Blocker::QueueLimit { queue, resource, held, wants, limit });
            }
        }
    }
    None
}

/// Counts the gang's minimum against its queue.
pub(crate) fn charge(scratch: &mut Scratch<'_>, gang: &Gang) {
    for (role, sig) in gang.spec.roles.iter().zip(&gang.sigs) {
        scratch.charge(gang.queue, *sig, role.min);
    }
}
