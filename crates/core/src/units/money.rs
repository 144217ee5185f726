//! Money as integers, so that a budget is kept to the last micro-unit.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

use crate::units::time::Span;

/// An amount of the operator's currency in millionths.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Money(pub i64);

impl Money {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// From whole currency units, rounded to the millionth; `None` when it is not a finite amount that fits.
    pub fn from_units(units: f64) -> Option<Self> {
        let micros = (units * 1e6).round();
        (micros.is_finite() && micros.abs() < 9e18).then_some(Self(micros as i64))
    }
    /// In currency units, for reports.
    pub fn as_units(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// What this price per hour comes to over `span`.
    pub fn per_hour_for(self, span: Span) -> Self {
        let micros = i128::from(self.0) * i128::from(span.0) / 3_600_000;
        Self(i64::try_from(micros).unwrap_or(i64::MAX))
    }
    /// This price for `count` nodes.
    pub fn times(self, count: u32) -> Self {
        Self(self.0.saturating_mul(i64::from(count)))
    }
}

impl Add for Money {
    type Output = Money;
    fn add(self, other: Money) -> Money {
        Money(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Money {
    fn add_assign(&mut self, other: Money) {
        *self = *self + other;
    }
}

impl Sub for Money {
    type Output = Money;
    fn sub(self, other: Money) -> Money {
        Money(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Money {
    /// Two decimals, as on a bill.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cents = (self.0.unsigned_abs() + 5_000) / 10_000;
        let sign = if self.0 < 0 && cents > 0 { "-" } else { "" };
        f.pad(&format!("{sign}{}.{:02}", cents / 100, cents % 100))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_add_up_without_drift() {
        let price = Money::from_units(98.32).unwrap();
        assert_eq!(price.per_hour_for(Span::hours(1)), price);
        assert_eq!(price.per_hour_for(Span::mins(15)).to_string(), "24.58");
        assert_eq!(price.times(8).to_string(), "786.56");
        assert_eq!(Money(-1_500_000).to_string(), "-1.50");
        assert!(Money::from_units(f64::NAN).is_none());
    }
}
