//! Gangs per hour, forecast by season and trend, if that beats the same hour of the days before.
//!
//! The seasonal model is MSTL with exponential smoothing of the remainder (`augurs`). Both forecasts are back-tested
//! on the last days, each day forecast from earlier days only, and the seasonal model is used only if its pinball loss
//! is the smaller. Fitting takes tens of milliseconds, so the fit is kept: once an hour is more than enough.

use augurs::ets::AutoETS;
use augurs::mstl::MSTLModel;
use augurs::{Fit, Predict};
use muster_core::time::{Span, Time};
use serde::{Deserialize, Serialize};

use crate::arrival::Arrival;
use crate::forecast::{Goal, TooLittleHistory};
use crate::hourly::{HOUR_MS, counts, hours, pinball, same_hour};

/// How far a fit looks ahead, in hours: long enough to be kept for a day.
const AHEAD: usize = 48;
/// How far back a fit looks, in hours: four weeks, so that demand of a quarter ago is forgotten.
const BACK: usize = 28 * 24;
/// How many days the back-test forecasts, one after the other.
const FOLDS: usize = 3;

/// Which of the two forecasts of gangs per hour is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Hourly {
    /// Season and trend.
    Seasonal,
    /// The same hour on the days before.
    SameHour,
}

/// How the two scored on the last days, as mean pinball loss in gangs: the smaller, the better.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Backtest {
    /// Of the seasonal model; `None` if it could not be fitted.
    pub seasonal: Option<f64>,
    /// Of the same hour's quantile.
    pub same_hour: f64,
}

/// A fitted forecast of gangs per hour. Good for a day; see [`Seasonal::stale`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Seasonal {
    from: Time,
    /// Gangs expected in each hour from `from` on.
    per_hour: Vec<f64>,
    /// Which model they are from.
    pub used: Hourly,
    /// The scores that chose it.
    pub backtest: Backtest,
}

impl Seasonal {
    /// Forecasts from the gangs that arrived from `since` to `now`, given by time.
    ///
    /// The back-test scores the quantile that the wanted hit rate asks for.
    pub fn fit(
        arrivals: &[Arrival],
        since: Time,
        now: Time,
        goal: &Goal,
    ) -> Result<Self, TooLittleHistory> {
        goal.check_history(since, now)?;
        let all = counts(arrivals, since, now);
        let from = since + Span(all.len() as u64 * HOUR_MS);
        let known = &all[all.len().saturating_sub(BACK)..];
        let seasons: Vec<usize> = goal.seasons.iter().map(|&season| hours(season)).collect();
        let first = seasons.iter().copied().min().unwrap_or(24);
        let backtest = backtest(known, &seasons, first, goal.quantile());
        let better = backtest.seasonal.is_some_and(|seasonal| seasonal < backtest.same_hour);
        let fitted = if better { predict(known, &seasons, AHEAD, goal.quantile()) } else { None };
        let (used, per_hour) = match fitted {
            Some(fitted) => (Hourly::Seasonal, fitted.into_iter().map(|hour| hour.0).collect()),
            None => {
                let mean = |ahead| same_hour(known, first, ahead, None);
                (Hourly::SameHour, (0..AHEAD).map(mean).collect())
            }
        };
        Ok(Self { from, per_hour, used, backtest })
    }
    /// Gangs per hour expected at `at`; beyond the forecast, the same hour of its last day.
    pub fn per_hour(&self, at: Time) -> f64 {
        let hour = usize::try_from(at.since(self.from).0 / HOUR_MS).unwrap_or(usize::MAX);
        let last_day = self.per_hour.len().saturating_sub(24);
        let known = if hour < self.per_hour.len() { hour } else { last_day + hour % 24 };
        self.per_hour.get(known).copied().unwrap_or(0.0)
    }
    /// Whether it is time for a new fit.
    pub fn stale(&self, now: Time) -> bool {
        now.since(self.from) > Span::hours(24)
    }
}

/// Point and upper quantile of the next hours; `None` if there is too little to fit, or the fit is not finite.
fn predict(
    counts: &[f64],
    seasons: &[usize],
    ahead: usize,
    quantile: f64,
) -> Option<Vec<(f64, f64)>> {
    // A season that was not observed twice is no season yet.
    let seen = |season: &&usize| **season > 1 && **season * 2 < counts.len();
    let seasons: Vec<usize> = seasons.iter().filter(seen).copied().collect();
    if seasons.is_empty() {
        return None;
    }
    let model = MSTLModel::new(seasons, AutoETS::non_seasonal().into_trend_model());
    // The upper end of a central interval of this width is the quantile.
    let width = (2.0 * quantile - 1.0).clamp(0.01, 0.999);
    let forecast = model.fit(counts).ok()?.predict(ahead, width).ok()?;
    let upper = forecast.intervals?.upper;
    let hours: Vec<(f64, f64)> = forecast
        .point
        .iter()
        .zip(&upper)
        .map(|(point, upper)| (point.max(0.0), upper.max(0.0)))
        .collect();
    hours.iter().all(|(point, upper)| point.is_finite() && upper.is_finite()).then_some(hours)
}

/// Forecasts the last days one by one, each from the days before it.
fn backtest(counts: &[f64], seasons: &[usize], first: usize, quantile: f64) -> Backtest {
    let (mut seasonal, mut plain, mut scored) = (Some(0.0), 0.0, 0.0);
    for fold in (1..=FOLDS).rev() {
        let Some(split) = counts.len().checked_sub(fold * 24).filter(|&split| split >= 2 * first)
        else {
            continue;
        };
        let (past, actual) = (&counts[..split], &counts[split..split + 24]);
        let fitted = predict(past, seasons, actual.len(), quantile);
        let loss = |forecast: &dyn Fn(usize) -> f64| -> f64 {
            actual
                .iter()
                .enumerate()
                .map(|(i, &actual)| pinball(quantile, forecast(i), actual))
                .sum()
        };
        seasonal = seasonal.zip(fitted).map(|(sum, fitted)| sum + loss(&|i| fitted[i].1));
        plain += loss(&|i| same_hour(past, first, i, Some(quantile)));
        scored += actual.len() as f64;
    }
    if scored == 0.0 {
        return Backtest { seasonal: None, same_hour: 0.0 };
    }
    Backtest { seasonal: seasonal.map(|sum| sum / scored), same_hour: plain / scored }
}
