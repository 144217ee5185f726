//! Queues and pools: created, changed and removed; demand and claims counted per pool.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::hardware::device::MAX_DEVICES;
use crate::hardware::resource::Amounts;
use crate::hardware::topology::ROOT;
use crate::history::decayed_usage::DecayedUsage;
use crate::history::demand::{Arrival, Demand};
use crate::history::health::Health;
use crate::id::{ClassIdx, Id, OfferingRef, PoolIdx, QueueIdx, SigIdx};
use crate::messages::event::Refusal;
use crate::objects::gang::{Gang, Phase, ProvisioningMode};
use crate::objects::pool::{Offering, Pool, PoolSpec, PoolUsage};
use crate::objects::proactive::PoolForecast;
use crate::objects::queue::{Bounds, Queue, QueueSpec, Quota, Usage};
use crate::units::calendar::Calendar;
use crate::units::time::{Span, Time};
use crate::world::World;
use crate::world::orders::reserved_seats;

/// The default half-life of past usage.
const HALF_LIFE: Span = Span::hours(24);

/// The queue that always exists.
pub(super) const DEFAULT: &str = "default";

impl World {
    pub(super) fn set_queue(&mut self, spec: QueueSpec) -> Result<(), Refusal> {
        let parent = match &spec.parent {
            None => None,
            Some(name) => Some(self.declared_queue(name)?),
        };
        let known = self.queue_by_name.get(&spec.name).copied();
        if let (Some(parent), Some(me)) = (parent, known)
            && self.queue_path(parent).any(|ancestor| ancestor == me)
        {
            return Err(Refusal::QueueCycle(spec.name));
        }
        let (guaranteed, limit) = (self.bounds(&spec.guaranteed), self.bounds(&spec.limit));
        let user_limit = self.bounds(&spec.user_limit);
        match known {
            Some(me) => {
                let usage = self.queues[me].usage.clone();
                self.charge_above(me, &usage, false);
                let queue = &mut self.queues[me];
                queue.gone = false;
                (queue.parent, queue.spec) = (parent, spec);
                (queue.guaranteed, queue.limit, queue.user_limit) = (guaranteed, limit, user_limit);
                self.charge_above(me, &usage, true);
            }
            None => {
                let name = spec.name.clone();
                let me = self.queues.push(Queue {
                    spec,
                    parent,
                    guaranteed,
                    limit,
                    user_limit,
                    half_life: Span::ZERO,
                    usage: Usage::default(),
                    past: DecayedUsage::default(),
                    users: BTreeMap::new(),
                    evicted: std::collections::VecDeque::new(),
                    gone: false,
                });
                self.queue_by_name.insert(name, me);
            }
        }
        self.recompute_tree();
        Ok(())
    }

    /// A queue is no longer declared. The queue `default` always exists, with its initial spec.
    pub(super) fn queue_gone(&mut self, name: &Arc<str>) -> Result<(), Refusal> {
        let me = self.declared_queue(name)?;
        if **name == *DEFAULT {
            return self.set_queue(QueueSpec::open(DEFAULT));
        }
        self.queues[me].gone = true;
        Ok(())
    }

    /// A declared queue.
    pub(super) fn declared_queue(&self, name: &Arc<str>) -> Result<QueueIdx, Refusal> {
        let known = self.queue_by_name.get(name).copied();
        let declared = known.filter(|queue| !self.queues[*queue].gone);
        declared.ok_or_else(|| Refusal::UnknownQueue(name.clone()))
    }

    fn bounds(&mut self, quota: &Quota) -> Bounds {
        let amounts = quota.amounts.iter().map(|(name, n)| (self.names.intern(name), *n)).collect();
        Bounds { gpu_milli: quota.gpu_milli, amounts }
    }

    /// Recomputes what depends on the whole tree: inherited half-lives, and the usage of each user where there is a
    /// limit for users.
    fn recompute_tree(&mut self) {
        let now = self.now;
        let limited = |queue: &Queue| !queue.limit.is_empty() || !queue.user_limit.is_empty();
        self.has_limits = self.queues.iter().any(|(_, queue)| limited(queue));
        for me in (0..self.queues.len()).map(QueueIdx::from_index) {
            let said = self.queue_path(me).find_map(|queue| self.queues[queue].spec.half_life);
            let queue = &mut self.queues[me];
            queue.past.settle(&queue.usage, queue.half_life, now);
            queue.half_life = said.unwrap_or(HALF_LIFE);
            queue.users.clear();
        }
        let mut held = Vec::new();
        for (id, gang) in self.gangs() {
            let seats = match gang.phase {
                Phase::Assembling(order) => reserved_seats(&self.orders[&order].spec),
                _ => gang.seats.clone(),
            };
            held.push((id, gang.queue, gang.spec.user.clone(), self.wants(gang, &seats)));
        }
        for (_, queue, user, wants) in held {
            for (sig, count) in wants {
                self.charge_user(queue, &user, sig, count, true);
            }
        }
    }

    /// Moves a queue's usage to or from its ancestors, when it moves in the tree.
    fn charge_above(&mut self, queue: QueueIdx, usage: &Usage, add: bool) {
        let above = self.queues[queue].parent;
        self.charge(above, &usage.amounts, usage.gpu_milli, 1, add);
    }

    /// Adds the usage of `count` members to a queue and its ancestors, or takes it off again.
    pub(super) fn charge(
        &mut self,
        from: Option<QueueIdx>,
        amounts: &Amounts,
        gpu_milli: u64,
        count: u32,
        add: bool,
    ) {
        let mut here = from;
        while let Some(queue) = here {
            let queue = &mut self.queues[queue];
            queue.past.settle(&queue.usage, queue.half_life, self.now);
            if add {
                queue.usage.add(amounts, gpu_milli, count);
            } else {
                queue.usage.take(amounts, gpu_milli, count);
            }
            here = queue.parent;
        }
    }

    /// Adds the usage of `count` members to a user wherever there is a limit for users, or takes it off.
    pub(super) fn charge_user(
        &mut self,
        queue: QueueIdx,
        user: &Arc<str>,
        sig: SigIdx,
        count: u32,
        add: bool,
    ) {
        let signature = &self.sigs[sig];
        let mut here = Some(queue);
        while let Some(at) = here {
            let queue = &mut self.queues[at];
            here = queue.parent;
            if queue.user_limit.is_empty() {
                continue;
            }
            let held = queue.users.entry(user.clone()).or_default();
            if add {
                held.add(&signature.key.amounts, signature.gpu_milli(), count);
            } else {
                held.take(&signature.key.amounts, signature.gpu_milli(), count);
            }
            if held.is_zero() {
                queue.users.remove(user);
            }
        }
    }

    pub(super) fn set_pool(&mut self, spec: PoolSpec) -> Result<(), Refusal> {
        if spec.offerings.iter().any(|offering| usize::from(offering.gpus) > MAX_DEVICES) {
            return Err(Refusal::TooManyDevices(spec.name));
        }
        let mut calendars = Vec::with_capacity(spec.ahead.schedules.len());
        for schedule in &spec.ahead.schedules {
            let calendar = Calendar::new(&schedule.cron, &schedule.timezone);
            calendars.push(calendar.map_err(|why| {
                Refusal::NoCalendar(spec.name.clone(), schedule.cron.clone(), why)
            })?);
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
                let idx = self.pools.push(Pool {
                    spec,
                    offerings,
                    usage: PoolUsage::default(),
                    calendars,
                    outlook: None,
                    demand: Demand::default(),
                });
                self.pool_by_name.insert(name, idx);
            }
            Some(idx) => {
                self.pools[idx].calendars = calendars;
                self.rewrite_pool(idx, spec, offerings);
            }
        }
        let now = self.now;
        for pool in self.pools.values_mut() {
            match pool.spec.ahead.forecast {
                Some(_) => pool.demand.begin(now),
                None => (pool.demand, pool.outlook) = (Demand::default(), None),
            }
        }
        Ok(())
    }

    /// Stores the forecast of a pool.
    pub(super) fn set_forecast(
        &mut self,
        pool: &Arc<str>,
        outlook: &PoolForecast,
    ) -> Result<(), Refusal> {
        let idx = self.pool_named(pool).ok_or_else(|| Refusal::UnknownPool(pool.clone()))?;
        self.pools[idx].outlook = Some(outlook.clone());
        Ok(())
    }

    /// Records a gang's arrival in the pool that would serve it at the lowest price, if that pool has a forecast.
    /// Gangs that exclude proactive provisioning are not counted.
    pub(super) fn record_demand(&mut self, gang: &Gang, at: Time) {
        let wants_to_know = |pool: &Pool| pool.spec.ahead.forecast.is_some();
        if gang.spec.provisioning.mode != ProvisioningMode::Proactive
            || !self.pools.values().any(wants_to_know)
        {
            return;
        }
        let needs = self.pools.iter().filter_map(|(idx, pool)| {
            let each = (0..pool.offerings.len())
                .filter_map(|slot| {
                    let nodes_milli = self.nodes_needed(gang, &pool.offerings[slot])?;
                    let price = pool.offerings[slot].spec.marginal_price().0;
                    Some((price.saturating_mul(i64::from(nodes_milli)), nodes_milli))
                })
                .min()?;
            Some((each.0, idx, each.1))
        });
        let Some((_, idx, mut nodes_milli)) = needs.min() else { return };
        if nodes_milli < 1_000 && self.fits_beside_others(gang, &self.pools[idx]) {
            nodes_milli = 0;
        }
        let was_recorded = !self.synced && self.pools[idx].demand.has_recorded(at);
        if wants_to_know(&self.pools[idx]) && !was_recorded {
            self.pools[idx].demand.record(Arrival { at, nodes_milli });
        }
    }

    /// Whether a gang of less than a node fits on a node of the pool that is in use already: no free node helps it.
    fn fits_beside_others(&self, gang: &Gang, pool: &Pool) -> bool {
        let listed =
            |class: ClassIdx| pool.offerings.iter().any(|offering| offering.class == class);
        let started = self.capacity.tally(ROOT).entries().iter().filter(|(state, _)| {
            let state = self.states.get(*state);
            listed(state.class) && *state != self.empty_state(state.class)
        });
        gang.spec.roles.iter().zip(&gang.sigs).all(|(role, sig)| {
            let fits = |state| self.sigs[*sig].times_fits(self.states.get(state));
            started.clone().any(|(state, _)| fits(*state) >= role.min)
        })
    }

    /// Thousandths of nodes of an offering that a gang's minimum fills; none if one member cannot run there.
    fn nodes_needed(&self, gang: &Gang, offering: &Offering) -> Option<u32> {
        let empty = self.empty_state(offering.class);
        let mut milli: u64 = 0;
        for (role, sig) in gang.spec.roles.iter().zip(&gang.sigs) {
            let signature = &self.sigs[*sig];
            let shape = &self.classes[offering.class];
            signature.score(shape, &self.topology, offering.leaf, None)?;
            let each = u64::from(signature.times_fits(&empty));
            milli += (u64::from(role.min) * 1_000).div_ceil(Some(each).filter(|each| *each > 0)?);
        }
        u32::try_from(milli).ok()
    }

    /// Claims refer to offerings by index, so a changed list keeps known offerings where they are, and removed ones
    /// stay at the end with no room left.
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

    /// Counts a claim's node in its pool, from its request until it is gone.
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
