//! Made-up demand, the same on every machine.

use muster_core::time::{Span, Time};
use muster_forecast::{Arrival, Asked, Memory, Seasonal, Wanted};

/// A small generator (SplitMix64): enough to scatter arrivals, and no dependency.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// Evenly from 0 to 1.
    pub(crate) fn roll(&mut self) -> f64 {
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
    let mut dice = Dice(seed);
    let mut arrivals = Vec::new();
    for second in 0..hours * 3_600 {
        if dice.roll() < per_hour(second / 3_600) / 3_600.0 {
            arrivals.push(Arrival { at: Time::ZERO + Span::secs(second), nodes_milli });
        }
    }
    arrivals
}

/// The lead of all pools here.
pub(crate) const LEAD: Span = Span::secs(255);

/// A question about the pool, with nothing learnt before.
pub(crate) fn ask(arrivals: &[Arrival], hours: u64) -> Asked<'_> {
    let now = Time::ZERO + Span::hours(hours);
    Asked { arrivals, since: Time::ZERO, now, lead: LEAD, memory: None, seasonal: None }
}

/// All that can be learnt until then.
pub(crate) fn memory(arrivals: &[Arrival], now: Time, wanted: &Wanted) -> Memory {
    let mut memory = Memory::new(Time::ZERO, LEAD, wanted.step, Span::hours(24));
    memory.learn(arrivals, now);
    memory
}

/// The forecast of gangs per hour at the end.
pub(crate) fn fit(arrivals: &[Arrival], hours: u64, wanted: &Wanted) -> Seasonal {
    Seasonal::fit(arrivals, Time::ZERO, Time::ZERO + Span::hours(hours), wanted).expect("a fit")
}
