//! The values that an axis labels.

use crate::report::numbers::tick;

/// A value and its label.
pub(crate) type Tick = (f64, String);

const MINUTE: f64 = 60.0;
const HOUR: f64 = 3_600.0;
const DAY: f64 = 86_400.0;

/// Round numbers from 0 to at least `most`, about `about` of them; the last is where the axis ends.
pub(crate) fn numbers(most: f64, about: usize) -> Vec<Tick> {
    let step = round_up(most / about as f64, &[1.0, 2.0, 2.5, 5.0, 10.0]);
    let count = (most / step - 1e-9).ceil().max(1.0) as usize;
    (0..=count).map(|i| i as f64 * step).map(|value| (value, tick(value))).collect()
}

/// The smallest of these multiples of a power of ten that is not below `least`.
fn round_up(least: f64, multiples: &[f64]) -> f64 {
    let power = 10f64.powf(least.max(1e-9).log10().floor());
    let fits = |multiple: &&f64| **multiple * power >= least * (1.0 - 1e-9);
    power * multiples.iter().find(fits).copied().unwrap_or(10.0)
}

/// Percentages from 0 to at least `most`, given as a fraction of one.
pub(crate) fn percents(most: f64, about: usize) -> Vec<Tick> {
    let ticks = numbers((most * 100.0).clamp(1.0, 100.0), about);
    ticks.into_iter().map(|(percent, label)| (percent / 100.0, format!("{label} %"))).collect()
}

/// Familiar spans of time within bounds, for a logarithmic axis.
pub(crate) fn spans(from: f64, to: f64) -> Vec<Tick> {
    let known = [
        (1.0, "1 s"),
        (10.0, "10 s"),
        (MINUTE, "1 min"),
        (10.0 * MINUTE, "10 min"),
        (HOUR, "1 h"),
        (6.0 * HOUR, "6 h"),
        (DAY, "1 d"),
        (7.0 * DAY, "1 wk"),
        (30.0 * DAY, "30 d"),
        (180.0 * DAY, "180 d"),
        (1_000.0 * DAY, "1,000 d"),
    ];
    let within = known.into_iter().filter(|(secs, _)| (from..=to).contains(secs));
    within.map(|(secs, label)| (secs, label.to_owned())).collect()
}

/// Factors from 1 on, for a logarithmic axis.
pub(crate) fn factors(to: f64) -> Vec<Tick> {
    let decades = to.log10();
    let multiples: &[f64] = if decades > 3.5 {
        &[1.0]
    } else if decades > 2.0 {
        &[1.0, 3.0]
    } else {
        &[1.0, 2.0, 5.0]
    };
    let powers = (0..12).map(|exponent| 10f64.powi(exponent));
    let values = powers.flat_map(|power| multiples.iter().map(move |multiple| multiple * power));
    values.take_while(|value| *value <= to).map(|value| (value, tick(value))).collect()
}

/// Times of a period that begins at 0, and their unit.
pub(crate) fn times(span_s: f64, about: usize) -> (Vec<Tick>, &'static str) {
    let (unit, name, steps): (f64, _, &[f64]) = match span_s {
        s if s < 5.0 * MINUTE => (1.0, "seconds", &[1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0]),
        s if s < 5.0 * HOUR => (MINUTE, "minutes", &[1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0]),
        s if s < 4.0 * DAY => (HOUR, "hours", &[1.0, 2.0, 3.0, 6.0, 12.0, 24.0]),
        _ => (DAY, "days", &[1.0, 2.0, 5.0, 7.0, 14.0, 28.0]),
    };
    let least = span_s / unit / about as f64;
    let known = steps.iter().copied().find(|step| *step >= least);
    let step = known.unwrap_or_else(|| round_up(least, &[1.0, 2.0, 5.0, 10.0]));
    let moments = (0..).map(|i| f64::from(i) * step).take_while(|at| at * unit <= span_s);
    (moments.map(|at| (at * unit, tick(at))).collect(), name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &[Tick]) -> String {
        ticks.iter().map(|(_, label)| label.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn ticks_are_round_numbers_and_reach_the_end() {
        assert_eq!(labels(&numbers(2_048.0, 4)), "0 1,000 2,000 3,000");
        assert_eq!(labels(&numbers(0.9, 3)), "0 0.5 1");
        assert_eq!(labels(&percents(1.0, 4)), "0 % 25 % 50 % 75 % 100 %");
        assert_eq!(labels(&percents(0.11, 3)), "0 % 5 % 10 % 15 %");
    }

    #[test]
    fn logarithmic_ticks_are_familiar_values() {
        assert_eq!(labels(&spans(1.0, 90_000.0)), "1 s 10 s 1 min 10 min 1 h 6 h 1 d");
        assert_eq!(labels(&factors(40.0)), "1 2 5 10 20");
        assert_eq!(labels(&factors(20_000.0)), "1 10 100 1,000 10,000");
    }

    #[test]
    fn times_use_the_unit_that_fits() {
        let (ticks, unit) = times(3.2 * DAY, 8);
        assert_eq!((labels(&ticks).as_str(), unit), ("0 12 24 36 48 60 72", "hours"));
        let (ticks, unit) = times(330.0 * DAY, 8);
        assert_eq!((labels(&ticks).as_str(), unit), ("0 50 100 150 200 250 300", "days"));
        assert_eq!(times(0.05, 8).0.len(), 1);
    }
}
