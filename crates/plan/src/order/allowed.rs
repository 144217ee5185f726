//! Whether a gang's queue, and those above it, allow what the gang declares.

use muster_core::allowed::{Excess, NonPreemptible};
use muster_core::gang::Gang;
use muster_core::id::QueueIdx;
use muster_core::verdict::{Blocker, Verdict};
use muster_core::{World, queue::Allowed};
use smallvec::SmallVec;

use crate::cycle::{Cycle, waiting};

/// The verdict of a gang that may not start however many nodes are free: it declares what its queue does not allow,
/// or it cannot be preempted and would hold what other queues can count on.
pub(crate) fn refused(cycle: &mut Cycle<'_>, gang: &Gang) -> Option<Verdict> {
    let infeasible = |why| Verdict::Impossible { blockers: SmallVec::from_elem(why, 1) };
    let world = cycle.scratch.world;
    if let Some((queue, excess)) = excess(world, &cycle.policy.unsaid, gang) {
        return Some(infeasible(Blocker::NotAllowed { queue, excess }));
    }
    let anywhere = world.queue(gang.queue).spec.allowed.non_preemptible == NonPreemptible::Always;
    if gang.spec.disruption.preemptible || anywhere {
        return None;
    }
    let beyond = cycle.limits.non_preemptible.beyond_guarantee(world, gang)?;
    Some(if beyond.alone { infeasible(beyond.blocker) } else { waiting([beyond.blocker]) })
}

/// The first thing a gang declares that a queue does not allow, and that queue.
fn excess(world: &World, unsaid: &Allowed, gang: &Gang) -> Option<(QueueIdx, Excess)> {
    let allowed = |queue: QueueIdx| -> &Allowed { &world.queue(queue).spec.allowed };
    if !allowed(gang.queue).admits(gang.spec.namespace()) {
        return Some((gang.queue, Excess::Namespace));
    }
    let mut said = Allowed::default();
    for queue in world.queue_path(gang.queue) {
        if let Some(excess) = allowed(queue).exceeded_by(&gang.spec) {
            return Some((queue, excess));
        }
        said = said.over(allowed(queue));
    }
    // The policy's default where no queue says anything. A priority that nothing has checked counts for nothing then.
    let unchecked = gang.spec.priority_is_declared.then_some(0);
    let unsaid = Allowed { max_priority: unsaid.max_priority.or(unchecked), ..unsaid.clone() };
    let all = Allowed { non_preemptible: NonPreemptible::Always, ..said.over(&unsaid) };
    let excess = all.exceeded_by(&gang.spec)?;
    Some((gang.queue, excess))
}
