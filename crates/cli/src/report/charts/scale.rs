//! Maps values to coordinates on a chart.

/// A linear or logarithmic map from values to coordinates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    /// Whether the scale is logarithmic.
    pub(crate) log: bool,
    /// The value at either end.
    pub(crate) ends: (f64, f64),
    /// The coordinate of either end.
    pub(crate) places: (f64, f64),
}

impl Scale {
    pub(crate) fn linear(ends: (f64, f64), places: (f64, f64)) -> Self {
        Self { log: false, ends, places }
    }

    pub(crate) fn log(ends: (f64, f64), places: (f64, f64)) -> Self {
        Self { log: true, ends, places }
    }

    /// The coordinate of a value, clamped to the ends.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let (from, to) = self.ends;
        let value = value.clamp(from, to);
        let part = if self.log {
            (value / from).ln() / (to / from).ln()
        } else {
            (value - from) / (to - from)
        };
        self.places.0 + part * (self.places.1 - self.places.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_linear_or_logarithmic_and_clamped() {
        let even = Scale::linear((0.0, 10.0), (100.0, 0.0));
        assert_eq!([0.0, 5.0, 10.0, 12.0].map(|value| even.at(value)), [100.0, 50.0, 0.0, 0.0]);
        let log = Scale::log((1.0, 100.0), (0.0, 200.0));
        assert_eq!([0.0, 1.0, 10.0, 100.0].map(|value| log.at(value)), [0.0, 0.0, 100.0, 200.0]);
    }
}
