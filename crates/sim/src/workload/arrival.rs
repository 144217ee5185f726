//! An endless sequence of arrival times.

use std::f64::consts::TAU;

use muster_core::time::Time;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1};

use crate::workload::spec::Arrival;

const HOUR_SECS: f64 = 3_600.0;
const DAY_SECS: f64 = 24.0 * HOUR_SECS;
const PEAK_SECS: f64 = 14.0 * HOUR_SECS;

/// A clock that moves from arrival to arrival.
pub(crate) struct Arrivals {
    rng: ChaCha8Rng,
    now_secs: f64,
    /// The highest rate there is, in arrivals a second.
    peak: f64,
    /// The height of the daily wave over its mean; 0 when every hour is alike.
    swing: f64,
}

impl Arrivals {
    pub(crate) fn new(arrival: Arrival, rng: ChaCha8Rng) -> Self {
        let (per_hour, peak_ratio) = match arrival {
            Arrival::Poisson { per_hour } => (per_hour, 1.0),
            Arrival::Diurnal { per_hour, peak_ratio } => (per_hour, peak_ratio),
        };
        // The wave is mean * (1 + swing * cos), so its ends are (1 + swing) and (1 - swing) apart.
        let swing = (peak_ratio - 1.0) / (peak_ratio + 1.0);
        Self { rng, now_secs: 0.0, peak: per_hour * (1.0 + swing) / HOUR_SECS, swing }
    }

    /// The next arrival. Candidates come at the peak rate and are kept with the probability of the hour (thinning),
    /// which is exact for any shape of the day.
    pub(crate) fn next(&mut self) -> Time {
        loop {
            let gap: f64 = Exp1.sample(&mut self.rng);
            self.now_secs += gap / self.peak;
            let wave = 1.0 + self.swing * (TAU * (self.now_secs - PEAK_SECS) / DAY_SECS).cos();
            if self.rng.random::<f64>() * (1.0 + self.swing) < wave {
                return Time::from_secs_f64(self.now_secs);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    /// Arrivals by hour of the day, over some 40 days.
    fn by_hour(arrival: Arrival) -> [u32; 24] {
        let mut arrivals = Arrivals::new(arrival, ChaCha8Rng::seed_from_u64(1));
        let mut hours = [0; 24];
        for _ in 0..100_000 {
            hours[(arrivals.next().as_secs_f64() / HOUR_SECS) as usize % 24] += 1;
        }
        hours
    }

    #[test]
    fn poisson_rate_is_the_same_in_every_hour() {
        let hours = by_hour(Arrival::Poisson { per_hour: 100.0 });
        let (least, most) = (hours.iter().min().unwrap(), hours.iter().max().unwrap());
        assert!(f64::from(*most) / f64::from(*least) < 1.15, "{hours:?}");
    }

    #[test]
    fn diurnal_rate_peaks_at_14_by_the_ratio_and_keeps_its_mean() {
        let arrival = Arrival::Diurnal { per_hour: 100.0, peak_ratio: 4.0 };
        let hours = by_hour(arrival);
        let ratio = f64::from(hours[13] + hours[14]) / f64::from(hours[1] + hours[2]);
        assert!((3.5..4.5).contains(&ratio), "{ratio} {hours:?}");

        let mut arrivals = Arrivals::new(arrival, ChaCha8Rng::seed_from_u64(2));
        let last = (0..24_000).map(|_| arrivals.next()).last().unwrap();
        let days = last.as_secs_f64() / DAY_SECS;
        assert!(
            (9.7..10.3).contains(&days),
            "24,000 arrivals at 100 an hour take ten days, not {days}"
        );
    }
}
