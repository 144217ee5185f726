//! Whether a gang's queue, and those above it, allow what the gang declares.

use muster_core::allowed::{Excess, NonPreemptible};
use muster_core::gang::Gang;
use muster_core::id::QueueIdx;
use muster_core::verdict::{Blocker, Verdict};
use muster_core::{World, queue::Allowed};
use smallvec::SmallVec;

use crate::cycle::Cycle;
use crate::serve::waiting;

/// The verdict of a gang that may not start whatever room there is: it declares what its queue does not allow, or it
/// cannot be preempted and would hold what others can count on.
pub(crate) fn refused(cycle: &mut Cycle<'_>, gang: &Gang) -> Option<Verdict> {
    let impossible = |why| Verdict::Impossible { blockers: SmallVec::from_elem(why, 1) };
    let world = cycle.scratch.world;
    if let Some((queue, excess)) = excess(world, gang) {
        return Some(impossible(Blocker::NotAllowed { queue, excess }));
    }
    let anywhere = world.queue(gang.queue).spec.allowed.non_preemptible == NonPreemptible::Always;
    if gang.spec.disruption.preemptible || anywhere {
        return None;
    }
    let beyond = cycle.non_preemptible.beyond_guarantee(world, gang)?;
    Some(if beyond.alone { impossible(beyond.blocker) } else { waiting([beyond.blocker]) })
}

/// The first thing a gang declares that a queue does not allow, and which queue that is.
fn excess(world: &World, gang: &Gang) -> Option<(QueueIdx, Excess)> {
    let allowed = |queue: QueueIdx| -> &Allowed { &world.queue(queue).spec.allowed };
    if !allowed(gang.queue).admits(gang.spec.namespace()) {
        return Some((gang.queue, Excess::Namespace));
    }
    let mut path = world.queue_path(gang.queue);
    let found = path.find_map(|queue| Some((queue, allowed(queue).exceeded_by(&gang.spec)?)));
    let declared = gang.spec.priority;
    let unbounded = || world.queue_path(gang.queue).all(|of| allowed(of).max_priority.is_none());
    found.or_else(|| {
        (gang.spec.priority_is_declared && declared > 0 && unbounded())
            .then_some((gang.queue, Excess::Priority { declared, allowed: 0 }))
    })
}
