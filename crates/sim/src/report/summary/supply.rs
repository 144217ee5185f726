//! Figures of purchased capacity: its use, and its cost by pool, tier and queue.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_core::money::Money;
use muster_core::order::ClaimFailure;
use muster_core::time::Span;
use serde::Serialize;

use crate::accounts::{ByState, Cause, Meter, RolledBack, State, failure_name};
use crate::report::summary::{hours, percentile};

/// Figures of purchased capacity. Only where there are pools.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Supply {
    /// GPU-hours billed, from launch to release without stopped time.
    pub bought_gpu_hours: f64,
    /// GPU-hours by state; they add up to what was bought.
    pub gpu_hours: ByState<f64>,
    /// Hours of nodes by state; a node that is used at all is running.
    pub node_hours: ByState<f64>,
    /// Cost by state.
    pub money: ByState<f64>,
    /// Hours of stopped nodes, which cost nothing.
    pub stopped_node_hours: f64,
    /// GPU-hours of stopped nodes.
    pub stopped_gpu_hours: f64,
    /// Pool by pool, in order of declaration.
    pub pools: Vec<PoolFigures>,
    /// Cost by tier, in order of declaration.
    pub tiers: Vec<Paid>,
    /// Cost by queue, the highest first: GPUs that its gangs used, and nodes held by its orders.
    pub queues: Vec<Paid>,
    /// Cost that no single queue pays: booting, stranded, warm, idle and broken.
    pub shared: f64,
    /// Starts that needed an order.
    pub gathered: usize,
    /// Median time from the first order for a gang to its start, in seconds.
    pub ready_p50_s: Option<f64>,
    /// The 95th percentile.
    pub ready_p95_s: Option<f64>,
    /// Rollbacks by reason, the dearest first.
    pub rollbacks: Vec<Rollbacks>,
    /// The cost of all rollbacks.
    pub rollback_cost: f64,
    /// Failed claims that were replaced within their order.
    pub top_ups: u64,
    /// Booting or stopped nodes that an order adopted instead of new ones.
    pub adopted: u64,
    /// Requests that met a stock-out.
    pub stock_outs: u64,
    /// Requests that were retried because the provider throttled them.
    pub retries: u64,
    /// Nodes that failed, by failure.
    pub failures: BTreeMap<&'static str, u64>,
}

/// Figures of one pool.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PoolFigures {
    /// Its name.
    pub name: Arc<str>,
    /// Its tier.
    pub tier: Arc<str>,
    /// The cost of its nodes.
    pub cost: f64,
    /// Hours of its nodes.
    pub node_hours: f64,
    /// GPU-hours of its nodes.
    pub bought_gpu_hours: f64,
    /// GPU-hours by state.
    pub gpu_hours: ByState<f64>,
}

/// The cost of a tier or a queue.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Paid {
    /// The tier or the queue.
    pub name: Arc<str>,
    /// Its cost.
    pub cost: f64,
}

/// Orders that were rolled back for one reason.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Rollbacks {
    /// The cause.
    pub reason: Cause,
    /// How many.
    pub count: usize,
    /// The cost of their nodes from launch until the rollback.
    pub cost_until: f64,
    /// Their cost after it, until they were used again or released.
    pub cost_after: f64,
}

impl Supply {
    /// The figures of a meter; none without pools.
    pub(crate) fn of(meter: &Meter) -> Option<Self> {
        meter.pools().next()?;
        let bought = meter.bought();
        let mut ready: Vec<f64> =
            meter.times_to_ready().iter().copied().map(Span::as_secs_f64).collect();
        ready.sort_by(f64::total_cmp);
        let ready_at = |share| (!ready.is_empty()).then(|| percentile(&ready, share));
        let money = |sum: Money, next: Money| sum + next;
        let rolled_back = given_up(meter);
        let failures = meter.failures();
        Some(Self {
            bought_gpu_hours: hours(bought.bought_gpu_ms()),
            gpu_hours: bought.gpu.map(gpu_hours),
            node_hours: bought.node_ms.map(hours),
            money: bought.money.map(Money::as_units),
            stopped_node_hours: hours(bought.stopped_node_ms),
            stopped_gpu_hours: gpu_hours(bought.stopped_gpu),
            pools: pools(meter),
            tiers: tiers(meter),
            queues: queues(meter),
            shared: meter.shared_money().as_units(),
            gathered: ready.len(),
            ready_p50_s: ready_at(0.50),
            ready_p95_s: ready_at(0.95),
            rollbacks: rollbacks(meter),
            rollback_cost: rolled_back
                .map(|one| one.until + one.after)
                .fold(Money::ZERO, money)
                .as_units(),
            top_ups: meter.top_ups(),
            adopted: meter.adopted(),
            stock_outs: failures.get(&ClaimFailure::StockOut).copied().unwrap_or(0),
            retries: meter.retries(),
            failures: failures.iter().map(|(how, count)| (failure_name(*how), *count)).collect(),
        })
    }

    /// The share of the purchased GPU-hours in one state; zero where none were bought.
    pub fn share(&self, state: State) -> f64 {
        if self.bought_gpu_hours > 0.0 {
            self.gpu_hours[state] / self.bought_gpu_hours
        } else {
            0.0
        }
    }
}

fn gpu_hours(gpu: u128) -> f64 {
    gpu as f64 / 1_000.0 / Span::hours(1).0 as f64
}

fn pools(meter: &Meter) -> Vec<PoolFigures> {
    let figures = meter.pools().map(|(spec, tally)| PoolFigures {
        name: spec.name.clone(),
        tier: spec.tier.clone(),
        cost: tally.cost().as_units(),
        node_hours: hours(tally.bought_node_ms()),
        bought_gpu_hours: hours(tally.bought_gpu_ms()),
        gpu_hours: tally.gpu.map(gpu_hours),
    });
    figures.collect()
}

fn tiers(meter: &Meter) -> Vec<Paid> {
    let mut tiers: Vec<(Arc<str>, Money)> = Vec::new();
    for (spec, tally) in meter.pools() {
        match tiers.iter_mut().find(|(name, _)| *name == spec.tier) {
            Some((_, cost)) => *cost += tally.cost(),
            None => tiers.push((spec.tier.clone(), tally.cost())),
        }
    }
    tiers.into_iter().map(|(name, cost)| Paid { name, cost: cost.as_units() }).collect()
}

fn queues(meter: &Meter) -> Vec<Paid> {
    let mut queues: Vec<(&Arc<str>, Money)> = meter.money_by_queue().collect();
    queues.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
    let paid =
        |(name, cost): (&Arc<str>, Money)| Paid { name: name.clone(), cost: cost.as_units() };
    queues.into_iter().map(paid).collect()
}

/// Rollbacks that cost something: a gang that starts sooner elsewhere has lost nothing.
fn given_up(meter: &Meter) -> impl Iterator<Item = &RolledBack> {
    meter.rolled_back().iter().filter(|one| one.cause != Cause::NotNeeded)
}

fn rollbacks(meter: &Meter) -> Vec<Rollbacks> {
    let mut by_cause: BTreeMap<Cause, (usize, Money, Money)> = BTreeMap::new();
    for one in given_up(meter) {
        let (count, until, after) = by_cause.entry(one.cause).or_default();
        *count += 1;
        *until += one.until;
        *after += one.after;
    }
    let mut all: Vec<(Cause, (usize, Money, Money))> = by_cause.into_iter().collect();
    all.sort_by_key(|(_, (_, until, after))| std::cmp::Reverse(*until + *after));
    let figures = |(cause, (count, until, after)): (Cause, (usize, Money, Money))| Rollbacks {
        reason: cause,
        count,
        cost_until: until.as_units(),
        cost_after: after.as_units(),
    };
    all.into_iter().map(figures).collect()
}
