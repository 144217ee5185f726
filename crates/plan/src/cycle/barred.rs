//! Which nodes, pools and queues are kept for gangs ahead, and from which gangs.

use muster_core::gang::Gang;
use muster_core::id::{ClassIdx, GangId, QueueIdx};
use muster_core::signature::Reach;
use muster_core::topology::ROOT;
use muster_core::verdict::Blocker;

use super::state::{BarredQueue, Cycle};
use crate::place::{Ask, asks};
use crate::policy::Overtaking;
use crate::provision::offerings_for;

impl Cycle<'_> {
    /// The queue of a gang, or one above it, that is closed.
    pub(crate) fn closed_to(&self, gang: &Gang) -> Option<QueueIdx> {
        let world = self.scratch.world;
        world.queue_path(gang.queue).find(|queue| !world.queue(*queue).is_open())
    }

    /// The gang ahead that waits for room under a limit that holds for this one too.
    pub(crate) fn barred_by(&self, gang: &Gang) -> Option<GangId> {
        let shares = |barred: &&BarredQueue| {
            barred.user.as_ref().is_none_or(|user| *user == gang.spec.user)
                && self.scratch.world.queue_path(gang.queue).any(|queue| queue == barred.queue)
        };
        self.limits.barred_queues.iter().find(shares).map(|barred| barred.ahead)
    }

    /// Gangs behind one that waits for room under a limit, and share that limit, do not overtake it.
    pub(crate) fn bar_queue(&mut self, id: GangId, gang: &Gang, over: &Blocker) {
        if self.policy.order.discipline().overtaking() == Overtaking::Free {
            return;
        }
        let (queue, user) = match over {
            Blocker::QueueLimit { queue, .. } => (*queue, None),
            Blocker::UserLimit { queue, .. } => (*queue, Some(gang.spec.user.clone())),
            _ => return,
        };
        self.limits.barred_queues.push(BarredQueue { queue, user, ahead: id });
    }

    /// Gangs behind a waiting gang stay off the nodes and pools it waits for.
    pub(crate) fn bar(&mut self, id: GangId, gang: &Gang) {
        self.limits.ahead.push(id);
        let world = self.scratch.world;
        for ask in asks(&self.scratch, gang) {
            for (state, _) in world.capacity().tally(ROOT).entries() {
                let class = world.states().get(*state).class;
                if !self.scratch.is_barred(class) && self.could_use(&ask, class) {
                    self.scratch.bar(class);
                }
            }
            for offering in offerings_for(self, gang, &ask) {
                if !self.limits.barred_pools.contains(&offering.pool) {
                    self.limits.barred_pools.push(offering.pool);
                }
            }
        }
    }

    /// Whether a class of nodes, when empty, takes members of a role.
    fn could_use(&mut self, ask: &Ask, class: ClassIdx) -> bool {
        let world = self.scratch.world;
        let signature = world.signature(ask.sig);
        signature.times_fits(&world.empty_state(class)) > 0
            && (signature.must != Reach::Class
                || self.fits.score(&self.scratch, ask.sig, class, ROOT).is_some())
    }

    /// Notes that a gang waits for room in the pools that could serve it.
    pub(crate) fn mark_contended(&mut self, gang: &Gang) {
        for ask in asks(&self.scratch, gang) {
            let pools = offerings_for(self, gang, &ask).into_iter().map(|offering| offering.pool);
            self.limits.contended_pools.extend(pools);
        }
    }
}
