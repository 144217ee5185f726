//! Queues and pools: what is written down about demand and supply.

use std::collections::BTreeMap;

use super::World;
use crate::device::MAX_DEVICES;
use crate::event::Refusal;
use crate::id::{OfferingRef, PoolIdx, QueueIdx};
use crate::pool::{Health, Offering, Pool, PoolSpec, PoolUsage};
use crate::queue::{Queue, QueueSpec, Usage};
use crate::resource::Amounts;

impl World {
    pub(super) fn set_queue(&mut self, spec: QueueSpec) -> Result<(), Refusal> {
        let parent = match &spec.parent {
            None => None,
            Some(name) => match self.queue_by_name.get(name) {
                Some(parent) => Some(*parent),
                None => return Err(Refusal::UnknownQueue(name.clone())),
            },
        };
        let known = self.queue_by_name.get(&spec.name).copied();
        if let (Some(parent), Some(me)) = (parent, known)
            && self.queue_path(parent).any(|ancestor| ancestor == me)
        {
            return Err(Refusal::QueueCycle(spec.name));
        }
        let limit: BTreeMap<_, _> = spec
            .limit
            .amounts
            .iter()
            .map(|(name, amount)| (self.names.intern(name), *amount))
            .collect();
        match known {
            Some(me) => {
                let usage = self.queues[me].usage.clone();
                self.charge_above(me, &usage, false);
                self.queues[me].parent = parent;
                self.queues[me].limit = limit;
                self.queues[me].spec = spec;
                self.charge_above(me, &usage, true);
            }
            None => {
                let name = spec.name.clone();
                let me = self.queues.push(Queue { spec, parent, limit, usage: Usage::default() });
                self.queue_by_name.insert(name, me);
            }
        }
        Ok(())
    }

    /// Moves a queue's use to or from everything above it, when it moves in the tree.
    fn charge_above(&mut self, queue: QueueIdx, usage: &Usage, add: bool) {
        if let Some(parent) = self.queues[queue].parent {
            self.charge(parent, &usage.amounts, usage.gpu_milli, 1, add);
        }
    }

    /// Adds `count` members' use to a queue and everything above it, or takes it off again.
    pub(super) fn charge(
        &mut self,
        queue: QueueIdx,
        amounts: &Amounts,
        gpu_milli: u64,
        count: u32,
        add: bool,
    ) {
        let mut here = Some(queue);
        while let Some(queue) = here {
            let queue = &mut self.queues[queue];
            if add {
                queue.usage.amounts.add(amounts, count);
                queue.usage.gpu_milli += gpu_milli * u64::from(count);
            } else {
                queue.usage.amounts.take(amounts, count);
                queue.usage.gpu_milli -= gpu_milli * u64::from(count);
            }
            here = queue.parent;
        }
    }

    pub(super) fn set_pool(&mut self, spec: PoolSpec) -> Result<(), Refusal> {
        if spec.offerings.iter().any(|offering| usize::from(offering.gpus) > MAX_DEVICES) {
            return Err(Refusal::TooManyDevices(spec.name));
        }
        let known = self.pool_by_name.get(&spec.name).copied();
        let mut offerings: Vec<Offering> = Vec::with_capacity(spec.offerings.len());
        for offering in &spec.offerings {
            let leaf = self.topology.leaf_for(&offering.labels);
            self.cover_topology();
            let class = self.class_of(
                &offering.labels,
                &offering.taints,
                &offering.allocatable,
                offering.gpu.as_ref(),
                offering.gpus,
            );
            let health = Health::default();
            offerings.push(Offering { spec: offering.clone(), class, leaf, nodes: 0, health });
        }
        match known {
            None => {
                let name = spec.name.clone();
                let idx = self.pools.push(Pool { spec, offerings, usage: PoolUsage::default() });
                self.pool_by_name.insert(name, idx);
            }
            Some(idx) => self.rewrite_pool(idx, spec, offerings),
        }
        Ok(())
    }

    /// Claims refer to offerings by place, so a rewritten list keeps known offerings where they are and
    /// what is no longer listed stays at the end with no room left.
    fn rewrite_pool(&mut self, idx: PoolIdx, mut spec: PoolSpec, mut offerings: Vec<Offering>) {
        let same = |a: &Offering, b: &Offering| {
            (&a.spec.instance_type, &a.spec.zone, &a.spec.capacity_type)
                == (&b.spec.instance_type, &b.spec.zone, &b.spec.capacity_type)
        };
        let mut kept: Vec<Offering> = Vec::new();
        for old in &self.pools[idx].offerings {
            let mut now = match offerings.iter().position(|new| same(new, old)) {
                Some(at) => offerings.remove(at),
                None => {
                    let mut retired = old.clone();
                    retired.spec.max = Some(0);
                    retired
                }
            };
            now.nodes = old.nodes;
            now.health = old.health;
            kept.push(now);
        }
        kept.extend(offerings);
        spec.offerings = kept.iter().map(|offering| offering.spec.clone()).collect();
        let mut usage = PoolUsage::default();
        for offering in &kept {
            usage.nodes += offering.nodes;
            usage.gpus += offering.nodes * u32::from(offering.spec.gpus);
            usage.hourly += offering.spec.price.times(offering.nodes);
        }
        self.pools[idx].usage = usage;
        self.pools[idx].spec = spec;
        self.pools[idx].offerings = kept;
    }

    /// Counts a claim's node in its pool, from the moment it is asked for until nothing is left of it.
    pub(super) fn count_claim(&mut self, offering: OfferingRef, add: bool) {
        let pool = &mut self.pools[offering.pool];
        let listed = &mut pool.offerings[usize::from(offering.slot)];
        let (price, gpus) = (listed.spec.price, u32::from(listed.spec.gpus));
        if add {
            listed.nodes += 1;
            pool.usage.nodes += 1;
            pool.usage.gpus += gpus;
            pool.usage.hourly += price;
        } else {
            listed.nodes -= 1;
            pool.usage.nodes -= 1;
            pool.usage.gpus -= gpus;
            pool.usage.hourly = pool.usage.hourly - price;
        }
    }
}
