//! The forecaster of a host: updates a model of each pool's demand every few minutes and forecasts the free nodes it
//! needs.
//!
//! A host keeps one, calls it when it is due, and passes its events to the World. The models are not stored: after a
//! restart they are learned again from the arrivals that the World remembers.

use muster_core::id::PoolIdx;
use muster_core::pool::Pool;
use muster_core::proactive::{self, ForecastSpec};
use muster_core::time::{Span, Time};
use muster_core::{Event, World};

use crate::arrival::Arrival;
use crate::burst_model::BurstModel;
use crate::forecast::{Goal, Inputs, Model, Objective, forecast};
use crate::seasonal::Seasonal;

/// How often each pool is forecast.
const STEP: Span = Span::mins(5);

/// Fewer arrivals than these give no forecast, however long the time they came in.
const MIN_ARRIVALS: usize = 10;
/// How often an unchanged forecast is sent again while no gang arrives.
const REPUBLISH: Span = Span::mins(30);
/// How often a seasonal model is refitted.
const REFIT: Span = Span::hours(24);

/// The model of one pool.
#[derive(Clone, Debug)]
struct PoolModel {
    pool: PoolIdx,
    goal: Goal,
    burst_model: BurstModel,
    /// Up to which arrival the burst model has learned.
    learned: Time,
    /// Fitted only where gangs arrive independently.
    seasonal: Option<Seasonal>,
    /// When the last fit was tried; at most once a day.
    fitted: Option<Time>,
    /// Until when the last forecast holds if no gang arrives: rates of independent arrivals change by the hour.
    holds: Option<Time>,
}

/// Forecasts demand for every pool that asks for it.
#[derive(Clone, Debug, Default)]
pub struct Forecaster {
    models: Vec<PoolModel>,
    due: Option<Time>,
}

impl Forecaster {
    /// When the next forecast is due; never where no pool asks for one.
    pub fn due(&self, world: &World, now: Time) -> Option<Time> {
        let wants = |pool: &Pool| pool.spec.ahead.forecast.is_some();
        world.pools().values().any(wants).then(|| self.due.unwrap_or(now))
    }

    /// Events for the World, one per pool with a new forecast. A pool with too little history gets none.
    pub fn forecast(&mut self, world: &World, now: Time) -> Vec<Event> {
        self.due = Some(now + STEP);
        let mut said = Vec::new();
        for (idx, pool) in world.pools().iter() {
            let (Some(spec), Some(since)) = (&pool.spec.ahead.forecast, pool.demand.since()) else {
                self.models.retain(|known| known.pool != idx);
                continue;
            };
            let goal = goal(spec, pool);
            let at = match self.models.iter().position(|known| known.pool == idx) {
                Some(at) if self.models[at].goal == goal => at,
                // Unknown, or modelled for another goal.
                found => {
                    found.map(|at| self.models.remove(at));
                    self.models.push(PoolModel::new(idx, pool, since, &goal));
                    self.models.len() - 1
                }
            };
            if let Some(outlook) = self.models[at].forecast(pool, since, now) {
                said.push(Event::Expected { pool: pool.spec.name.clone(), outlook });
            }
        }
        said
    }
}

impl PoolModel {
    fn new(idx: PoolIdx, pool: &Pool, since: Time, goal: &Goal) -> Self {
        let season = goal.first_season();
        Self {
            pool: idx,
            goal: goal.clone(),
            burst_model: BurstModel::new(since, lead(pool), STEP, season),
            learned: since - Span(1),
            seasonal: None,
            fitted: None,
            holds: None,
        }
    }

    fn forecast(&mut self, pool: &Pool, since: Time, now: Time) -> Option<proactive::PoolForecast> {
        let all = pool.demand.arrivals();
        let new = all.partition_point(|arrival| arrival.at <= self.learned);
        let seen = |arrival: &muster_core::demand::Arrival| Arrival {
            at: arrival.at,
            nodes_milli: arrival.nodes_milli,
        };
        // A gang that arrives at this very instant may not be recorded yet; it is learned in the next step.
        let fresh: Vec<Arrival> =
            all.range(new..).filter(|arrival| arrival.at < now).map(seen).collect();
        self.burst_model.learn(&fresh, now);
        self.learned = now - Span(1);
        if fresh.is_empty() && self.holds.is_some_and(|until| now < until) {
            return None;
        }
        if all.len() < MIN_ARRIVALS {
            return None;
        }
        let arrivals: Vec<Arrival> = all.iter().map(seen).collect();
        let (burst_model, lead) = (Some(&self.burst_model), lead(pool));
        let inputs = Inputs { arrivals: &arrivals, since, now, lead, burst_model, seasonal: None };
        let with = |seasonal| forecast(&Inputs { seasonal, ..inputs }, &self.goal).ok();
        let mut found = with(self.seasonal.as_ref())?;
        let stale = self.fitted.is_none_or(|at| now.since(at) >= REFIT);
        if matches!(found.model, Model::Independent(_)) && stale {
            let fitted = Seasonal::fit(&arrivals, since, now, &self.goal).ok();
            found = with(fitted.as_ref())?;
            (self.seasonal, self.fitted) = (fitted, Some(now));
        }
        self.holds = matches!(found.model, Model::Independent(_)).then(|| now + REPUBLISH);
        // Valid until the next forecast and, should that fail, for a while after.
        Some(proactive::PoolForecast { from: now, step: Span::hours(1), nodes: vec![found.now()] })
    }
}

/// The lead time: from requesting a node of a pool to having it ready.
fn lead(pool: &Pool) -> Span {
    pool.offerings.iter().map(|offering| offering.spec.boot_time).max().unwrap_or_default()
}

fn goal(spec: &ForecastSpec, pool: &Pool) -> Goal {
    let price = pool.offerings.iter().map(|offering| offering.spec.price.as_units());
    let objective = match spec.cost_of_waiting {
        Some(cost) => Objective::Cost {
            waiting_hour: cost.as_units(),
            node_hour: price.fold(f64::INFINITY, f64::min),
        },
        None => Objective::HitRate(f64::from(spec.service_level) / 1e3),
    };
    Goal {
        seasons: spec.seasons.clone(),
        objective,
        max_nodes: spec.max_nodes,
        min_history: spec.min_history,
        step: STEP,
    }
}
