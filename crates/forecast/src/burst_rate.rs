//! The rate at which bursts come, from how many came lately, on several scales of "lately".
//!
//! Arrivals excite arrivals: a user who submits now will most likely submit again in minutes, and a team that was busy
//! yesterday is busy today. No single time scale captures this, so there are six, and a component for the hour of the
//! season, and [`RateMixture`] learns the weight of each on this pool.

use muster_core::time::{Span, Time};
use serde::{Deserialize, Serialize};

use crate::rate_mixture::RateMixture;

/// How long a burst counts on each scale, in seconds: ten minutes to two weeks, each about four times the one before.
const SCALES: [f64; 6] = [600.0, 2_400.0, 10_800.0, 43_200.0, 172_800.0, 1_209_600.0];
/// The scales, and the hour of the season.
pub(crate) const COMPONENTS: usize = SCALES.len() + 1;
/// How long an hour of the season counts as average before its own past outweighs the prior: six visits.
const HOUR_PRIOR_SECS: f64 = 6.0 * 3_600.0;
const HOUR_MS: u64 = 3_600_000;

/// Rates of bursts.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct BurstRate {
    decayed: [f64; SCALES.len()],
    by_hour: Vec<f64>,
    hour_secs: Vec<f64>,
    bursts: f64,
    secs: f64,
    mixture: RateMixture,
}

impl BurstRate {
    pub(crate) fn new(season: Span) -> Self {
        let hours = usize::try_from(season.0 / HOUR_MS).unwrap_or(0).clamp(1, 24 * 7);
        Self {
            decayed: [0.0; SCALES.len()],
            by_hour: vec![0.0; hours],
            hour_secs: vec![0.0; hours],
            bursts: 0.0,
            secs: 0.0,
            mixture: RateMixture::new(&[20.0 / COMPONENTS as f64; COMPONENTS]),
        }
    }
    /// By how much a burst decays on each scale while `step` passes.
    pub(crate) fn decay_factors(step: Span) -> [f64; SCALES.len()] {
        SCALES.map(|scale| (-step.as_secs_f64() / scale).exp())
    }
    fn hour(&self, at: Time) -> usize {
        (at.0.div_euclid(HOUR_MS as i64)).rem_euclid(self.by_hour.len() as i64) as usize
    }
    /// The rate of each component, in bursts per second.
    pub(crate) fn components(&self, at: Time) -> [f64; COMPONENTS] {
        let hour = self.hour(at);
        let average = self.bursts / self.secs.max(1.0);
        let mut components = [0.0; COMPONENTS];
        for (i, component) in components.iter_mut().enumerate() {
            *component = match SCALES.get(i) {
                Some(scale) => self.decayed[i] / scale,
                None => {
                    (self.by_hour[hour] + average * HOUR_PRIOR_SECS)
                        / (self.hour_secs[hour] + HOUR_PRIOR_SECS)
                }
            };
        }
        components
    }
    /// The rate by these components relative to the long-term average: 1 is average.
    pub(crate) fn intensity(&self, components: &[f64; COMPONENTS]) -> f64 {
        // One burst and one hour more than were observed, so that the first burst is no outlier.
        let average = (self.bursts + 1.0) / (self.secs + 3_600.0);
        (self.mixture.rate(components) / average).max(1e-3)
    }
    /// Advances by one step; `burst` holds the component rates at its start, if a burst came in it. Returns the rates
    /// now.
    pub(crate) fn advance(
        &mut self,
        until: Time,
        step: Span,
        decay_factors: &[f64; SCALES.len()],
        burst: Option<&[f64; COMPONENTS]>,
    ) -> [f64; COMPONENTS] {
        for (decayed, factor) in self.decayed.iter_mut().zip(decay_factors) {
            *decayed *= factor;
        }
        let hour = self.hour(until);
        if let Some(before) = burst {
            self.mixture.observe(before);
            self.decayed.iter_mut().for_each(|decayed| *decayed += 1.0);
            self.by_hour[hour] += 1.0;
            self.bursts += 1.0;
        }
        let secs = step.as_secs_f64();
        self.secs += secs;
        self.hour_secs[hour] += secs;
        let components = self.components(until);
        self.mixture.advance(&components, secs);
        components
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_raise_the_rate_and_it_decays_within_hours() {
        let (step, mut burst_rate) = (Span::mins(5), BurstRate::new(Span::hours(24)));
        let (decay_factors, mut now) = (BurstRate::decay_factors(step), Time::ZERO);
        let mut intensities = Vec::new();
        // Ten days with six bursts in the first half hour after ten o'clock, and none otherwise.
        for tick in 0..10 * 288 {
            let components = burst_rate.components(now);
            now += step;
            let burst = (120..126).contains(&(tick % 288));
            let components =
                burst_rate.advance(now, step, &decay_factors, burst.then_some(&components));
            intensities.push(burst_rate.intensity(&components));
        }
        let day = &intensities[9 * 288..];
        assert!(day[126] > 5.0, "in the midst of it: {}", day[126]);
        assert!(day[144] < 0.5 * day[126], "two hours later: {}", day[144]);
        assert!(day[280] < 0.5, "late in the evening: {}", day[280]);
        assert!(day[119 + 1] > day[280], "and the hour is known: {}", day[120]);
    }
}
