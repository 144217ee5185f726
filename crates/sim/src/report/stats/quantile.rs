//! Distributions: percentiles, boxes and cumulative curves.

pub(crate) use crate::report::summary::percentile;

/// The mean; 0 where there are no values.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |sum, value| sum + value) / values.len().max(1) as f64
}

/// Five percentiles of some values.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Five {
    /// How many values there are.
    pub count: usize,
    /// The 5th percentile.
    pub p5: f64,
    /// The 25th percentile.
    pub p25: f64,
    /// The median.
    pub p50: f64,
    /// The 75th percentile.
    pub p75: f64,
    /// The 95th percentile.
    pub p95: f64,
}

impl Five {
    /// The percentiles of these values; none when there are no values.
    pub(crate) fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let at = |share| percentile(&values, share);
        (!values.is_empty()).then(|| Self {
            count: values.len(),
            p5: at(0.05),
            p25: at(0.25),
            p50: at(0.50),
            p75: at(0.75),
            p95: at(0.95),
        })
    }
}

/// A cumulative curve: for each value, the share of all that does not exceed it.
pub type Curve = Vec<(f64, f64)>;

/// The cumulative curve of sorted values at `points` places between `from` and `to`, evenly spaced by logarithm.
pub(crate) fn curve(sorted: &[f64], from: f64, to: f64, points: usize) -> Curve {
    let ratio = (to / from).ln() / (points - 1) as f64;
    let places = (0..points).map(|i| match i {
        last if last == points - 1 => to,
        i => from * (ratio * i as f64).exp(),
    });
    let count = sorted.len().max(1) as f64;
    places.map(|x| (x, sorted.partition_point(|value| *value <= x) as f64 / count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let values = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(percentile(&values, 0.5), 2.0);
        assert_eq!(percentile(&values, 0.95), 4.0);
        assert_eq!(percentile(&[], 0.5), 0.0);
        let five = Five::of((1..=100).rev().map(f64::from).collect()).expect("there are values");
        assert_eq!((five.p5, five.p25, five.p50, five.p75, five.p95), (5., 25., 50., 75., 95.));
        assert_eq!(Five::of(Vec::new()), None);
    }

    #[test]
    fn cumulative_curve_never_falls_and_ends_at_one() {
        let curve = curve(&[0.0, 5.0, 50.0, 100.0], 1.0, 100.0, 3);
        let shares: Vec<f64> = curve.iter().map(|(_, share)| *share).collect();
        assert_eq!(shares, [0.25, 0.5, 1.0]);
        assert!((curve[1].0 - 10.0).abs() < 1e-9);
    }
}
