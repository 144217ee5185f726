//! The forecast: how many nodes to keep free over the next minutes.

use muster_core::time::{Span, Time};
use serde::{Deserialize, Serialize};

use crate::arrival::Arrival;
use crate::burst_model::BurstModel;
use crate::compound_poisson::CompoundPoisson;
use crate::dispersion::dispersion;
use crate::hourly::{HOUR_MS, counts, hours, same_hour};
use crate::seasonal::{Backtest, Hourly, Seasonal};

/// Above this dispersion gangs do not arrive independently. Independent arrivals are at 1, and a thousand of them
/// rarely above 1.2; with a few hours of retries it stays well below 2.
const OVERDISPERSED: f64 = 2.0;
/// How far back sizes and dispersion are computed.
const BACK: Span = Span::hours(28 * 24);

/// What a forecast is computed from.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// The arrivals, by time; those after `now` are ignored.
    pub arrivals: &'a [Arrival],
    /// Since when arrivals are counted.
    pub since: Time,
    /// What time it is.
    pub now: Time,
    /// The lead time: from requesting a node to having it ready.
    pub lead: Span,
    /// The model learned before, up to `now`; without it one is learned from `arrivals`.
    pub burst_model: Option<&'a BurstModel>,
    /// A seasonal forecast fitted before; without it the same hour of the days before is taken.
    pub seasonal: Option<&'a Seasonal>,
}

/// What a hit is worth.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Objective {
    /// This share of gangs is to be hit, with as few idle nodes as that takes.
    HitRate(f64),
    /// Whatever costs least: a newsvendor's choice, with gangs for papers.
    Cost {
        /// What it costs when one gang waits for an hour.
        waiting_hour: f64,
        /// What one node costs in an hour.
        node_hour: f64,
    },
}

/// What is wanted of a pool's free nodes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Goal {
    /// Seasons that demand may have, such as a day and a week. They are given, not detected.
    pub seasons: Vec<Span>,
    /// What hits are worth.
    pub objective: Objective,
    /// Never keep more nodes free than this.
    pub max_nodes: Option<u32>,
    /// No forecast before so much history.
    pub min_history: Span,
    /// How often the pool's target is refreshed.
    pub step: Span,
}

impl Default for Goal {
    /// Nine of ten gangs, by day and week, from the third day on, refreshed every five minutes.
    fn default() -> Self {
        Self {
            seasons: vec![Span::hours(24), Span::hours(168)],
            objective: Objective::HitRate(0.9),
            max_nodes: None,
            min_history: Span::hours(48),
            step: Span::mins(5),
        }
    }
}

/// There is too little history.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error, Serialize, Deserialize)]
#[error("too little history to forecast from: another {missing} is needed")]
pub struct TooLittleHistory {
    /// How much more time has to pass.
    pub missing: Span,
}

/// The model the number of nodes was computed with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Model {
    /// Gangs arrive in bursts: the burst model.
    Bursts,
    /// Gangs arrive independently: so many an hour, by this forecast, with sizes added up over a lead time.
    Independent(Hourly),
}

/// How many nodes to keep free.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Forecast {
    /// When the first step begins.
    pub from: Time,
    /// How long a step is.
    pub step: Span,
    /// Free nodes wanted in each step, at least until a node requested at the next refresh would be ready.
    pub nodes: Vec<u32>,
    /// What they were worked out with.
    pub model: Model,
    /// How far arrivals come in bursts; see [`dispersion`].
    pub dispersion: f64,
    /// How the forecasts of gangs per hour scored, if one was fitted.
    pub backtest: Option<Backtest>,
}

impl Forecast {
    /// Free nodes to have, ready or requested, from now to the next refresh: what is wanted when they are ready.
    pub fn now(&self) -> u32 {
        self.nodes.iter().copied().max().unwrap_or(0)
    }
}

impl Goal {
    pub(crate) fn check_history(&self, since: Time, now: Time) -> Result<(), TooLittleHistory> {
        let missing = self.min_history.0.saturating_sub(now.since(since).0);
        if missing > 0 { Err(TooLittleHistory { missing: Span(missing) }) } else { Ok(()) }
    }
    pub(crate) fn first_season(&self) -> Span {
        self.seasons.iter().copied().min().unwrap_or(Span::hours(24))
    }
    /// The quantile of demand to stock for: the hit rate, or the newsvendor's critical ratio.
    pub(crate) fn quantile(&self) -> f64 {
        match self.objective {
            Objective::HitRate(rate) => rate.clamp(0.5, 0.999),
            Objective::Cost { waiting_hour, node_hour } => {
                (waiting_hour / (waiting_hour + node_hour).max(f64::MIN_POSITIVE)).clamp(0.5, 0.999)
            }
        }
    }
}

impl Objective {
    /// The most that a node is worth, in gangs missed per second, if costs decide.
    fn price(self, lead: Span) -> Option<f64> {
        match self {
            Objective::HitRate(_) => None,
            Objective::Cost { waiting_hour, node_hour } => {
                let miss = waiting_hour * lead.as_secs_f64() / 3_600.0;
                Some((node_hour / 3_600.0) / miss.max(f64::MIN_POSITIVE))
            }
        }
    }
}

/// Computes how many nodes to keep free over the next minutes, or how much history is missing.
///
/// A function of inputs and goal alone. Given a burst model and a seasonal forecast it takes well under a millisecond;
/// without a burst model it takes milliseconds per month of history.
pub fn forecast(inputs: &Inputs, goal: &Goal) -> Result<Forecast, TooLittleHistory> {
    goal.check_history(inputs.since, inputs.now)?;
    let until = inputs.arrivals.partition_point(|arrival| arrival.at <= inputs.now);
    let since = inputs.since.max(inputs.now - BACK);
    let recent = inputs.arrivals[..until].partition_point(|arrival| arrival.at < since);
    let recent = &inputs.arrivals[recent..until];
    let dispersion = dispersion(recent, since, inputs.now, inputs.lead);
    let steps = inputs.lead.0.div_ceil(goal.step.0.max(1)) + 1;
    let most = goal.max_nodes.unwrap_or(BurstModel::LARGEST).min(BurstModel::LARGEST);
    let starts = (0..steps).map(|i| inputs.now + Span(goal.step.0 * i));
    let (nodes, model) = if dispersion > OVERDISPERSED {
        let learned;
        let burst_model = match inputs.burst_model {
            Some(burst_model) => burst_model,
            None => {
                learned = learn(&inputs.arrivals[..until], inputs, goal);
                &learned
            }
        };
        let price = match goal.objective {
            Objective::HitRate(rate) => burst_model.price_for(rate),
            Objective::Cost { .. } => goal.objective.price(inputs.lead).unwrap_or(f64::MAX),
        };
        (starts.map(|at| burst_model.size_at_price(at, price).min(most)).collect(), Model::Bursts)
    } else {
        let hourly = per_hour(recent, since, inputs, goal);
        let size =
            |at| size_for_independent(recent, hourly.1(at), inputs.lead, goal.objective, most);
        (starts.map(size).collect(), Model::Independent(hourly.0))
    };
    let backtest = inputs.seasonal.map(|seasonal| seasonal.backtest);
    Ok(Forecast { from: inputs.now, step: goal.step, nodes, model, dispersion, backtest })
}

fn learn(arrivals: &[Arrival], inputs: &Inputs, goal: &Goal) -> BurstModel {
    let mut burst_model =
        BurstModel::new(inputs.since, inputs.lead, goal.step, goal.first_season());
    burst_model.learn(arrivals, inputs.now);
    burst_model
}

/// Gangs per hour at a time, and the model that gives them.
fn per_hour<'a>(
    recent: &[Arrival],
    since: Time,
    inputs: &Inputs<'a>,
    goal: &Goal,
) -> (Hourly, Box<dyn Fn(Time) -> f64 + 'a>) {
    if let Some(seasonal) = inputs.seasonal {
        return (seasonal.used, Box::new(|at| seasonal.per_hour(at)));
    }
    let counts = counts(recent, since, inputs.now);
    let end = since + Span(counts.len() as u64 * HOUR_MS);
    let season = hours(goal.first_season());
    let mean = move |at: Time| {
        let ahead = usize::try_from(at.since(end).0 / HOUR_MS).unwrap_or(0);
        same_hour(&counts, season, ahead, None)
    };
    (Hourly::SameHour, Box::new(mean))
}

/// The pool for independent gangs that arrive at this rate, sized like the recent ones.
fn size_for_independent(
    recent: &[Arrival],
    per_hour: f64,
    lead: Span,
    objective: Objective,
    most: u32,
) -> u32 {
    let demand = CompoundPoisson::new(recent, per_hour * lead.as_secs_f64() / 3_600.0);
    match objective {
        Objective::HitRate(rate) => demand.for_hit_rate(rate, most),
        Objective::Cost { .. } => {
            let price = objective.price(lead).unwrap_or(f64::MAX) * lead.as_secs_f64();
            demand.for_price(price, most)
        }
    }
}
