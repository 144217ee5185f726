//! The forecaster of a host: looks at what was asked of each pool every few minutes, and says what to expect.
//!
//! A host keeps one, asks it when it is due, and tells the World what it says. What it has learnt is not worth
//! writing down: after a restart it is learnt anew from what the World remembers.

use muster_core::id::PoolIdx;
use muster_core::pool::Pool;
use muster_core::proactive::{self, ForecastSpec};
use muster_core::time::{Span, Time};
use muster_core::{Event, World};

use crate::arrival::Arrival;
use crate::memory::Memory;
use crate::outlook::{Aim, Asked, Model, Wanted, outlook};
use crate::seasonal::Seasonal;

/// How often each pool is looked at.
const STEP: Span = Span::mins(5);

/// From fewer gangs than these nothing is concluded, however long the time they came in.
const FEWEST: usize = 10;
/// How often the same is said again where nobody comes.
const REPEAT: Span = Span::mins(30);
/// How often a seasonal model is fitted anew.
const REFIT: Span = Span::hours(24);

/// What is known about one pool.
#[derive(Clone, Debug)]
struct Known {
    pool: PoolIdx,
    wanted: Wanted,
    memory: Memory,
    /// Up to which arrival the memory has learnt.
    learnt: Time,
    /// Fitted only where gangs come one by one.
    seasonal: Option<Seasonal>,
    /// When that was last tried; at most once a day.
    fitted: Option<Time>,
    /// Until when what was said last holds if nobody comes: rates of gangs that come one by one change by the hour.
    holds: Option<Time>,
}

/// Says what to expect of every pool that wants to know.
#[derive(Clone, Debug, Default)]
pub struct Forecaster {
    known: Vec<Known>,
    due: Option<Time>,
}

impl Forecaster {
    /// When it wants to be asked next; never where no pool wants to know.
    pub fn due(&self, world: &World, now: Time) -> Option<Time> {
        let wants = |pool: &Pool| pool.spec.ahead.forecast.is_some();
        world.pools().values().any(wants).then(|| self.due.unwrap_or(now))
    }

    /// What the World is to be told now, pool by pool. A pool with too little history is told nothing.
    pub fn look(&mut self, world: &World, now: Time) -> Vec<Event> {
        self.due = Some(now + STEP);
        let mut said = Vec::new();
        for (idx, pool) in world.pools().iter() {
            let (Some(spec), Some(since)) = (&pool.spec.ahead.forecast, pool.demand.since()) else {
                self.known.retain(|known| known.pool != idx);
                continue;
            };
            let wanted = wanted(spec, pool);
            let at = match self.known.iter().position(|known| known.pool == idx) {
                Some(at) if self.known[at].wanted == wanted => at,
                // Unknown, or known for something else than is wanted now.
                found => {
                    found.map(|at| self.known.remove(at));
                    self.known.push(Known::new(idx, pool, since, &wanted));
                    self.known.len() - 1
                }
            };
            if let Some(outlook) = self.known[at].look(pool, since, now) {
                said.push(Event::Expected { pool: pool.spec.name.clone(), outlook });
            }
        }
        said
    }
}

impl Known {
    fn new(idx: PoolIdx, pool: &Pool, since: Time, wanted: &Wanted) -> Self {
        let season = wanted.first_season();
        Self {
            pool: idx,
            wanted: wanted.clone(),
            memory: Memory::new(since, lead(pool), STEP, season),
            learnt: since - Span(1),
            seasonal: None,
            fitted: None,
            holds: None,
        }
    }

    fn look(&mut self, pool: &Pool, since: Time, now: Time) -> Option<proactive::Outlook> {
        let all = pool.demand.arrivals();
        let new = all.partition_point(|arrival| arrival.at <= self.learnt);
        let seen = |arrival: &muster_core::demand::Arrival| Arrival {
            at: arrival.at,
            nodes_milli: arrival.nodes_milli,
        };
        // Whoever comes at this very instant may not be noted yet; he is learnt of next time.
        let fresh: Vec<Arrival> =
            all.range(new..).filter(|arrival| arrival.at < now).map(seen).collect();
        self.memory.learn(&fresh, now);
        self.learnt = now - Span(1);
        if fresh.is_empty() && self.holds.is_some_and(|until| now < until) {
            return None;
        }
        if all.len() < FEWEST {
            return None;
        }
        let arrivals: Vec<Arrival> = all.iter().map(seen).collect();
        let (memory, lead) = (Some(&self.memory), lead(pool));
        let asked = Asked { arrivals: &arrivals, since, now, lead, memory, seasonal: None };
        let with = |seasonal| outlook(&Asked { seasonal, ..asked }, &self.wanted).ok();
        let mut found = with(self.seasonal.as_ref())?;
        let stale = self.fitted.is_none_or(|at| now.since(at) >= REFIT);
        if matches!(found.model, Model::Even(_)) && stale {
            let fitted = Seasonal::fit(&arrivals, since, now, &self.wanted).ok();
            found = with(fitted.as_ref())?;
            (self.seasonal, self.fitted) = (fitted, Some(now));
        }
        self.holds = matches!(found.model, Model::Even(_)).then(|| now + REPEAT);
        // Valid until the next look and, should that fail, for a while after.
        Some(proactive::Outlook { from: now, step: Span::hours(1), nodes: vec![found.now()] })
    }
}

/// From asking for a node of a pool to having it ready.
fn lead(pool: &Pool) -> Span {
    pool.offerings.iter().map(|offering| offering.spec.boot_time).max().unwrap_or_default()
}

fn wanted(spec: &ForecastSpec, pool: &Pool) -> Wanted {
    let price = pool.offerings.iter().map(|offering| offering.spec.price.as_units());
    let aim = match spec.cost_of_waiting {
        Some(cost) => Aim::Cost {
            waiting_hour: cost.as_units(),
            node_hour: price.fold(f64::INFINITY, f64::min),
        },
        None => Aim::HitRate(f64::from(spec.service_level) / 1e3),
    };
    Wanted {
        seasons: spec.seasons.clone(),
        aim,
        max_nodes: spec.max_nodes,
        min_history: spec.min_history,
        step: STEP,
    }
}
