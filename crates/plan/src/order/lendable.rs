//! Keeps lent capacity reclaimable: bounds what gangs hold that cannot be preempted.
//!
//! A queue can count on its guarantee at any time. Capacity that it does not use is lent, and is reclaimed by
//! preempting the borrowers. A gang that cannot be preempted must therefore not hold what another queue can count on.
//! It is covered by its own queue's guarantee first, then by what the guarantee of each queue above leaves after
//! those of its children, and at last by the capacity that no queue is guaranteed. Where no queue has a guarantee
//! nothing is lent, and nothing is held back.
//!
//! Capacity is what there is and what pools may still add, counted in GPUs and amounts. Which nodes those are is not
//! considered.

use std::collections::BTreeMap;

use muster_core::World;
use muster_core::gang::{Gang, Phase};
use muster_core::id::{QueueIdx, ResourceIdx};
use muster_core::pool::{Pool, PoolUsage};
use muster_core::queue::{Bounds, Usage};
use muster_core::verdict::Blocker;

/// What gangs that cannot be preempted hold, queue by queue, and what covers it.
#[derive(Debug, Default)]
pub(crate) struct NonPreemptibleUse {
    books: Option<Books>,
    /// Gangs that started before the books were opened: they count as well.
    early: Vec<(QueueIdx, Usage)>,
}

#[derive(Debug)]
struct Books {
    /// Held by gangs of the queue itself.
    held: BTreeMap<QueueIdx, Usage>,
    children: BTreeMap<Option<QueueIdx>, Vec<QueueIdx>>,
    /// Capacity there is, and capacity that pools may add.
    capacity: Usage,
}

/// A gang that would hold what other queues can count on.
pub(super) struct Beyond {
    pub(super) blocker: Blocker,
    /// It would even if no other gang were there.
    pub(super) alone: bool,
}

/// GPUs when absent.
type Of = Option<ResourceIdx>;

impl NonPreemptibleUse {
    /// Counts a gang that starts in this cycle.
    pub(crate) fn start(&mut self, gang: &Gang) {
        if gang.spec.disruption.preemptible {
            return;
        }
        match &mut self.books {
            Some(books) => add(books.held.entry(gang.queue).or_default(), &gang.wants),
            None => self.early.push((gang.queue, gang.wants.clone())),
        }
    }

    /// What a gang that cannot be preempted would hold of what other queues can count on, if anything.
    pub(super) fn beyond_guarantee(&mut self, world: &World, gang: &Gang) -> Option<Beyond> {
        let mut queues = world.queues().iter();
        if !queues.any(|(_, queue)| queue.guaranteed.concerns(&gang.wants)) {
            return None;
        }
        let early = std::mem::take(&mut self.early);
        let books = self.books.get_or_insert_with(|| Books::of(world, &early));
        let wanted = gang.wants.amounts.iter().map(|(resource, _)| Some(resource));
        let gpus = (gang.wants.gpu_milli > 0).then_some(None);
        let mut of = gpus.into_iter().chain(wanted);
        of.find_map(|of| books.beyond(world, gang, of))
    }
}

impl Books {
    fn of(world: &World, early: &[(QueueIdx, Usage)]) -> Self {
        let mut held: BTreeMap<QueueIdx, Usage> = BTreeMap::new();
        for (_, gang) in world.gangs() {
            // Seats beyond its minimum can be reclaimed while it runs.
            if !gang.spec.disruption.preemptible && gang.phase != Phase::Waiting {
                add(held.entry(gang.queue).or_default(), &gang.wants);
            }
        }
        for (queue, wants) in early {
            add(held.entry(*queue).or_default(), wants);
        }
        let mut children: BTreeMap<Option<QueueIdx>, Vec<QueueIdx>> = BTreeMap::new();
        for (queue, listed) in world.queues().iter() {
            children.entry(listed.parent).or_default().push(queue);
        }
        Self { held, children, capacity: capacity(world) }
    }

    fn beyond(&self, world: &World, gang: &Gang, of: Of) -> Option<Beyond> {
        let guaranteed = self
            .below(None)
            .iter()
            .fold(0, |sum: u64, queue| sum.saturating_add(self.guaranteed(world, *queue, of)));
        if guaranteed == 0 {
            return None;
        }
        let unguaranteed = amount(&self.capacity, of).saturating_sub(guaranteed);
        let wants = amount(&gang.wants, of);
        let all = |held: bool, wants: u64| {
            self.below(None).iter().fold(0, |sum: u64, queue| {
                sum.saturating_add(self.uncovered(world, *queue, of, (gang.queue, wants), held))
            })
        };
        let (before, after) = (all(true, 0), all(true, wants));
        if after <= unguaranteed || after == before {
            return None;
        }
        let blocker = Blocker::BeyondGuarantee {
            queue: gang.queue,
            resource: of,
            held: self.held_below(gang.queue, of),
            wants,
            guaranteed: self.guaranteed(world, gang.queue, of),
        };
        Some(Beyond { blocker, alone: all(false, wants) > unguaranteed })
    }

    fn below(&self, queue: Option<QueueIdx>) -> &[QueueIdx] {
        self.children.get(&queue).map_or(&[], Vec::as_slice)
    }

    /// What a queue can count on: its own guarantee, and no less than the guarantees of its children together.
    fn guaranteed(&self, world: &World, queue: QueueIdx, of: Of) -> u64 {
        let own = bound(&world.queue(queue).guaranteed, of);
        own.max(self.guaranteed_below(world, queue, of))
    }

    fn guaranteed_below(&self, world: &World, queue: QueueIdx, of: Of) -> u64 {
        let below = self.below(Some(queue)).iter();
        below.fold(0, |sum: u64, child| sum.saturating_add(self.guaranteed(world, *child, of)))
    }

    /// What is held in a queue and below it that no guarantee there covers, with `more` added in one of the queues.
    fn uncovered(
        &self,
        world: &World,
        queue: QueueIdx,
        of: Of,
        more: (QueueIdx, u64),
        held: bool,
    ) -> u64 {
        let own = self.held.get(&queue).filter(|_| held).map_or(0, |held| amount(held, of));
        let own = if more.0 == queue { own.saturating_add(more.1) } else { own };
        let all = self.below(Some(queue)).iter().fold(own, |sum, child| {
            sum.saturating_add(self.uncovered(world, *child, of, more, held))
        });
        let covers = bound(&world.queue(queue).guaranteed, of);
        all.saturating_sub(covers.saturating_sub(self.guaranteed_below(world, queue, of)))
    }

    fn held_below(&self, queue: QueueIdx, of: Of) -> u64 {
        let own = self.held.get(&queue).map_or(0, |held| amount(held, of));
        let below = self.below(Some(queue)).iter();
        below.fold(own, |sum, child| sum.saturating_add(self.held_below(*child, of)))
    }
}

fn add(to: &mut Usage, more: &Usage) {
    to.add(&more.amounts, more.gpu_milli, 1);
}

fn amount(usage: &Usage, of: Of) -> u64 {
    of.map_or(usage.gpu_milli, |resource| usage.amounts.get(resource))
}

fn bound(bounds: &Bounds, of: Of) -> u64 {
    of.map_or(bounds.gpu_milli, |resource| bounds.amounts.get(&resource).copied()).unwrap_or(0)
}

/// The capacity of nodes that came with the cluster, and of pools at their limits.
fn capacity(world: &World) -> Usage {
    let mut all = Usage::default();
    for (_, node) in world.nodes().filter(|(_, node)| node.claim.is_none() && node.usable) {
        let shape = world.class(node.class);
        all.add(&shape.allocatable, u64::from(shape.gpus) * 1_000, 1);
    }
    for pool in world.pools().values() {
        let more = at_limits(world, pool);
        all.gpu_milli = all.gpu_milli.saturating_add(more.gpu_milli);
        for (resource, amount) in more.amounts.iter() {
            all.amounts.set(resource, all.amounts.get(resource).saturating_add(amount));
        }
    }
    all
}

/// The capacity of a pool at its limits. They hold for all of its offerings together, so no mix has more nodes than
/// they allow of one offering.
fn at_limits(world: &World, pool: &Pool) -> Usage {
    let (mut sum, mut largest, mut shared) = (Usage::default(), Usage::default(), 0);
    for (slot, offering) in pool.offerings.iter().enumerate() {
        let nodes = u64::from(pool.room_beside(slot, &PoolUsage::default(), 0));
        shared = shared.max(u64::from(pool.room_within_limits(slot, &PoolUsage::default())));
        let gpus = u64::from(offering.spec.gpus).saturating_mul(1_000);
        sum.gpu_milli = sum.gpu_milli.saturating_add(gpus.saturating_mul(nodes));
        largest.gpu_milli = largest.gpu_milli.max(gpus);
        for (resource, each) in world.empty_state(offering.class).free.iter() {
            let here = sum.amounts.get(resource).saturating_add(each.saturating_mul(nodes));
            sum.amounts.set(resource, here);
            largest.amounts.set(resource, largest.amounts.get(resource).max(each));
        }
    }
    let gpu_milli = sum.gpu_milli.min(largest.gpu_milli.saturating_mul(shared));
    let mut most = Usage { gpu_milli, ..Usage::default() };
    for (resource, amount) in sum.amounts.iter() {
        most.amounts
            .set(resource, amount.min(largest.amounts.get(resource).saturating_mul(shared)));
    }
    most
}
