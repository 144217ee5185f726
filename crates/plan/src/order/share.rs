//! Fair shares of queues: hierarchical dominant-resource fairness with decayed usage.
//!
//! A queue's share is its part of the resource that it holds most of, divided by its weight. Average usage in the
//! past counts as well, so that a queue that was idle goes before one that was busy, and less so as time passes. Half
//! of what the queue would get next counts too: gangs are large beside shares, and without that a queue of small
//! weight would get more than its part, or with all of it less. A queue that is within its guarantee goes before all
//! that are not, so lent capacity comes back as soon as something ends.

use muster_core::gang::Gang;
use muster_core::id::{GangId, Id, QueueIdx, ResourceIdx};
use muster_core::queue::Usage;
use muster_core::resource::TOKEN;
use muster_core::time::Time;
use muster_core::{World, decayed_usage::DecayedUsage};

use crate::scratch::Scratch;

/// Shares, cached until a queue's usage changes.
#[derive(Debug)]
pub(super) struct Shares {
    kept: Vec<Option<(GangId, f64)>>,
    now: Time,
}

impl Shares {
    pub(super) fn new(world: &World, now: Time) -> Self {
        Self { kept: vec![None; world.queues().len()], now }
    }

    /// The share of a queue if this gang is the next it starts; less goes first.
    pub(super) fn of(&mut self, scratch: &Scratch<'_>, queue: QueueIdx, next: GangId) -> f64 {
        if let Some((gang, share)) = self.kept[queue.index()]
            && gang == next
        {
            return share;
        }
        let listed = scratch.world.queue(queue);
        let past = listed.past.later(&listed.usage, listed.half_life, self.now);
        let share = dominant(scratch, scratch.queue_usage(queue), &past, next)
            / f64::from(listed.spec.weight).max(f64::MIN_POSITIVE);
        self.kept[queue.index()] = Some((next, share));
        share
    }

    /// The share of a queue's own gangs, without those of the queues below it.
    pub(super) fn of_own(&self, scratch: &Scratch<'_>, queue: QueueIdx, next: GangId) -> f64 {
        let mut own = scratch.queue_usage(queue).clone();
        for (child, listed) in scratch.world.queues().iter() {
            if listed.parent == Some(queue) {
                let below = scratch.queue_usage(child);
                own.take(&below.amounts, below.gpu_milli, 1);
            }
        }
        dominant(scratch, &own, &DecayedUsage::default(), next)
    }

    /// The usage of a queue has changed: its share and those above it are computed anew.
    pub(super) fn invalidate(&mut self, world: &World, queue: QueueIdx) {
        for queue in world.queue_path(queue) {
            self.kept[queue.index()] = None;
        }
    }
}

/// Whether a queue would be within its guarantee with this on top.
pub(super) fn within_guarantee(scratch: &Scratch<'_>, queue: QueueIdx, wants: &Usage) -> bool {
    let sure = &scratch.world.queue(queue).guaranteed;
    sure.concerns(wants) && sure.exceeded(scratch.queue_usage(queue), wants).is_none()
}

/// Whether a branch of the tree can count on what a gang below it wants: it is within its guarantee with it, or the
/// gang's own queue is, whose guarantee is a part of those above. What siblings have borrowed of that does not count
/// against it.
pub(crate) fn counts_on(scratch: &Scratch<'_>, branch: QueueIdx, gang: &Gang) -> bool {
    let world = scratch.world;
    let nested = || {
        let path = world.queue_path(gang.queue);
        let below = path.take_while(|queue| *queue != branch).skip(1);
        let mut above = below.chain([branch].into_iter().filter(|branch| *branch != gang.queue));
        above.all(|queue| covers_children(world, queue, &gang.wants))
            && within_guarantee(scratch, gang.queue, &gang.wants)
    };
    within_guarantee(scratch, branch, &gang.wants) || nested()
}

/// Whether the guarantee of a queue is at least those of the queues right below it together, of what is wanted.
fn covers_children(world: &World, queue: QueueIdx, wants: &Usage) -> bool {
    let sure = &world.queue(queue).guaranteed;
    let below = || world.queues().iter().filter(|(_, listed)| listed.parent == Some(queue));
    let of_gpus = below().fold(0u64, |sum, (_, listed)| {
        sum.saturating_add(listed.guaranteed.gpu_milli.unwrap_or(0))
    });
    let gpus = wants.gpu_milli == 0 || sure.gpu_milli.is_none_or(|sure| sure >= of_gpus);
    gpus && sure.amounts.iter().all(|(resource, sure)| {
        let below = below().fold(0u64, |sum, (_, listed)| {
            sum.saturating_add(listed.guaranteed.amounts.get(resource).copied().unwrap_or(0))
        });
        wants.amounts.get(*resource) == 0 || *sure >= below
    })
}

/// The largest part of any resource that is held now, was held on average, or would be held with half of what the
/// gang wants.
fn dominant(scratch: &Scratch<'_>, held: &Usage, past: &DecayedUsage, next: GangId) -> f64 {
    let world = scratch.world;
    let wants = &world.gang(next).expect("it waits").wants;
    let top = world.queues().iter().filter(|(_, queue)| queue.parent.is_none());
    let top: Vec<&Usage> = top.map(|(queue, _)| scratch.queue_usage(queue)).collect();
    // Nodes that are still booting are held, and not part of the total yet.
    let all = |have: u64, of: &dyn Fn(&Usage) -> u64| have.max(top.iter().map(|u| of(u)).sum());
    let sum = |held: u64, past: f64, wants: u64| held as f64 + past + wants as f64 / 2.0;
    let part = |held: f64, all: u64| if all == 0 { 0.0 } else { held / all as f64 };
    let gpus = all(world.total().gpu_milli, &|usage| usage.gpu_milli);
    let mut most = part(sum(held.gpu_milli, past.gpu_milli(), wants.gpu_milli), gpus);
    for resource in (0..world.names().len()).map(ResourceIdx::from_index) {
        if world.names().name(resource).starts_with(TOKEN) {
            continue; // a gang that keeps others off its nodes has no larger share for that
        }
        let have = all(world.total().amounts.get(resource), &|usage| usage.amounts.get(resource));
        let (held, wants) = (held.amounts.get(resource), wants.amounts.get(resource));
        most = most.max(part(sum(held, past.amount(resource), wants), have));
    }
    most
}
