//! Arrivals per hour, and the plain forecast: the same hour on the days before.

use muster_core::time::{Span, Time};

use crate::arrival::Arrival;

/// An hour in milliseconds.
pub(crate) const HOUR_MS: u64 = 3_600_000;

/// Gangs that arrived in each whole hour from `since` to `now`.
pub(crate) fn counts(arrivals: &[Arrival], since: Time, now: Time) -> Vec<f64> {
    let hours = now.since(since).0 / HOUR_MS;
    let mut counts = vec![0.0; usize::try_from(hours).unwrap_or(0)];
    for arrival in arrivals {
        if arrival.at >= since
            && let Some(count) = usize::try_from(arrival.at.since(since).0 / HOUR_MS)
                .ok()
                .and_then(|hour| counts.get_mut(hour))
        {
            *count += 1.0;
        }
    }
    counts
}

/// A season in whole hours, at least one.
pub(crate) fn hours(season: Span) -> usize {
    usize::try_from(season.0 / HOUR_MS).unwrap_or(0).max(1)
}

/// The count for the hour `ahead` hours after the end, from the same hour in past seasons: a quantile, or their mean.
pub(crate) fn same_hour(counts: &[f64], season: usize, ahead: usize, quantile: Option<f64>) -> f64 {
    let phase = (counts.len() + ahead) % season;
    let mut past: Vec<f64> = counts.iter().skip(phase).step_by(season).copied().collect();
    if past.is_empty() {
        return 0.0;
    }
    match quantile {
        None => past.iter().sum::<f64>() / past.len() as f64,
        Some(quantile) => {
            past.sort_by(f64::total_cmp);
            let rank = (quantile * past.len() as f64).ceil() as usize;
            past[rank.clamp(1, past.len()) - 1]
        }
    }
}

/// The pinball loss of a quantile forecast: least, on average, for the true quantile.
pub(crate) fn pinball(quantile: f64, forecast: f64, came: f64) -> f64 {
    let short = came - forecast;
    if short > 0.0 { quantile * short } else { (quantile - 1.0) * short }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_hour_takes_mean_or_quantile_across_seasons() {
        let counts: Vec<f64> = (0..72).map(|hour| f64::from(hour % 24 * 10 + hour / 24)).collect();
        assert_eq!(same_hour(&counts, 24, 0, None), 1.0, "hour 0 of three days: 0, 1, 2");
        assert_eq!(same_hour(&counts, 24, 5, Some(1.0)), 52.0);
        assert_eq!(same_hour(&counts, 24, 29, Some(0.3)), 50.0, "and of the day after");
    }

    #[test]
    fn high_quantile_penalizes_shortfall_more_than_excess() {
        assert!((pinball(0.9, 8.0, 10.0) - 1.8).abs() < 1e-9);
        assert!((pinball(0.9, 12.0, 10.0) - 0.2).abs() < 1e-9);
    }
}
