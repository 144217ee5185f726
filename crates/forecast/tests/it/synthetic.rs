//! Synthetic demand, the same on every machine.

use muster_core::time::{Span, Time};
use muster_forecast::{Arrival, BurstModel, Goal, Inputs, Seasonal};

/// A small generator (SplitMix64): enough to scatter arrivals, and no dependency.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    /// Evenly from 0 to 1.
    pub(crate) fn next_f64(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Independent gangs over so many hours, at a rate per hour that may differ by the hour.
pub(crate) fn independent(
    hours: u64,
    seed: u64,
    nodes_milli: u32,
    per_hour: impl Fn(u64) -> f64,
) -> Vec<Arrival> {
    let mut rng = Rng(seed);
    let mut arrivals = Vec::new();
    for second in 0..hours * 3_600 {
        if rng.next_f64() < per_hour(second / 3_600) / 3_600.0 {
            arrivals.push(Arrival { at: Time::ZERO + Span::secs(second), nodes_milli });
        }
    }
    arrivals
}

/// The lead time of all pools here.
pub(crate) const LEAD: Span = Span::secs(255);

/// The inputs of a forecast, with no model learned before.
pub(crate) fn inputs_at(arrivals: &[Arrival], hours: u64) -> Inputs<'_> {
    let now = Time::ZERO + Span::hours(hours);
    Inputs { arrivals, since: Time::ZERO, now, lead: LEAD, burst_model: None, seasonal: None }
}

/// The burst model after all arrivals until then.
pub(crate) fn burst_model(arrivals: &[Arrival], now: Time, goal: &Goal) -> BurstModel {
    let mut burst_model = BurstModel::new(Time::ZERO, LEAD, goal.step, Span::hours(24));
    burst_model.learn(arrivals, now);
    burst_model
}

/// The forecast of gangs per hour at the end.
pub(crate) fn fit(arrivals: &[Arrival], hours: u64, goal: &Goal) -> Seasonal {
    Seasonal::fit(arrivals, Time::ZERO, Time::ZERO + Span::hours(hours), goal).expect("a fit")
}
