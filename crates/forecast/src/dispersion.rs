//! Whether gangs arrive independently or in bursts.

use muster_core::time::{Span, Time};

use crate::arrival::Arrival;
use crate::hourly::HOUR_MS;

/// Index of dispersion: how much more the number of gangs in a lead time varies than if each arrived independently,
/// for the hour it is. 1 for independent arrivals, whatever their season; the real clusters of `docs/forecast.md` are
/// at 7 to 35.
///
/// Sizes of independent gangs can be added up as probabilities. Bursts are not independent, and a pool sized as if
/// they were is too small for each of them.
pub fn dispersion(arrivals: &[Arrival], since: Time, now: Time, lead: Span) -> f64 {
    let lead_ms = lead.0.clamp(1_000, HOUR_MS);
    let windows = HOUR_MS / lead_ms;
    let first = arrivals.partition_point(|arrival| arrival.at < since);
    let (mut spread, mut mean) = (0.0, 0.0);
    let mut rest = &arrivals[first..];
    // Hour by hour: the variance of the windows within an hour does not see that hours differ.
    while let Some(next) = rest.first() {
        let hour = next.at.since(since).0 / HOUR_MS;
        let begin = since + Span(hour * HOUR_MS);
        let end = begin + Span(HOUR_MS);
        let here = rest.partition_point(|arrival| arrival.at < end);
        if end > now {
            break;
        }
        let (mut squares, mut count, mut run) = (0.0, 0.0, (u64::MAX, 0.0));
        for arrival in &rest[..here] {
            let window = arrival.at.since(begin).0 / lead_ms;
            if window >= windows {
                break;
            }
            if window != run.0 {
                squares += run.1 * run.1;
                run = (window, 0.0);
            }
            run.1 += 1.0;
            count += 1.0;
        }
        squares += run.1 * run.1;
        if windows > 1 {
            let n = windows as f64;
            spread += (squares - count * count / n) / (n - 1.0);
            mean += count / n;
        }
        rest = &rest[here..];
    }
    if mean > 0.0 { spread / mean } else { 1.0 }
}
