//! Time as a parameter: milliseconds since the host's epoch, and spans between two such instants.
//!
//! There is no clock here. Hosts pass the time in; the simulator passes it a million times faster.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An instant, in milliseconds since the host's epoch (the Unix epoch on live hosts, 0 in a simulation).
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(pub i64);

/// A length of time in milliseconds; never negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Span(pub u64);

impl Time {
    /// The host's epoch.
    pub const ZERO: Self = Self(0);
    /// Later than every instant a host reports.
    pub const MAX: Self = Self(i64::MAX);

    /// The span from `earlier` to here, or zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Span {
        Span(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
    /// Seconds since the epoch, for reports.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }
    /// An instant given in seconds, rounded to the millisecond.
    pub fn from_secs_f64(secs: f64) -> Self {
        Self((secs * 1e3).round() as i64)
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// A span of whole seconds.
    pub const fn secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000))
    }
    /// A span of whole minutes.
    pub const fn mins(mins: u64) -> Self {
        Self::secs(mins.saturating_mul(60))
    }
    /// A span of whole hours.
    pub const fn hours(hours: u64) -> Self {
        Self::mins(hours.saturating_mul(60))
    }
    /// A span given in seconds, rounded to the millisecond; negative becomes zero.
    pub fn from_secs_f64(secs: f64) -> Self {
        Self((secs.max(0.0) * 1e3).round() as u64)
    }
    /// The span in seconds, for reports.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }
    /// `self` times `factor`, without wrapping around.
    pub fn saturating_mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add_unsigned(span.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub<Span> for Time {
    type Output = Time;
    fn sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub_unsigned(span.0))
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

/// Units from large to small, in milliseconds.
const UNITS: [(&str, u64); 6] = [
    ("w", 604_800_000),
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

impl fmt::Display for Span {
    /// `1h30m`, `4m10s`, `250ms`; weeks are written in days, as people do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let mut rest = self.0;
        for (unit, ms) in &UNITS[1..] {
            if rest >= *ms {
                write!(f, "{}{unit}", rest / ms)?;
                rest %= ms;
            }
        }
        Ok(())
    }
}

/// Why a text is not a span.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpanError {
    /// Nothing was written.
    #[error("a duration is needed, such as 90s, 15m or 1h30m")]
    Empty,
    /// A number without a unit, or an unknown unit.
    #[error(
        "`{0}` is not a duration: write numbers with units w, d, h, m, s or ms, such as 90s, 15m or 1h30m"
    )]
    Malformed(String),
    /// More milliseconds than fit.
    #[error("`{0}` is too long a duration")]
    TooLong(String),
}

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        let malformed = || SpanError::Malformed(text.to_owned());
        let too_long = || SpanError::TooLong(text.to_owned());
        if text.is_empty() {
            return Err(SpanError::Empty);
        }
        if text == "0" {
            return Ok(Self::ZERO);
        }
        let mut total: u64 = 0;
        let mut rest = text;
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(malformed)?;
            let amount: u64 = match &rest[..digits] {
                "" => return Err(malformed()),
                number => number.parse().map_err(|_| too_long())?,
            };
            rest = &rest[digits..];
            let unit_len = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
            let ms =
                UNITS.iter().find(|(name, _)| *name == &rest[..unit_len]).ok_or_else(malformed)?.1;
            rest = &rest[unit_len..];
            total = amount
                .checked_mul(ms)
                .and_then(|span| total.checked_add(span))
                .ok_or_else(too_long)?;
        }
        Ok(Self(total))
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_parse_and_print_with_units() {
        for (text, ms) in
            [("90s", 90_000), ("15m", 900_000), ("1h30m", 5_400_000), ("250ms", 250), ("0", 0)]
        {
            assert_eq!(text.parse(), Ok(Span(ms)), "{text}");
        }
        assert_eq!(Span(5_400_000).to_string(), "1h30m");
        assert_eq!(Span(90_000).to_string(), "1m30s");
        assert_eq!(Span::ZERO.to_string(), "0s");
    }

    #[test]
    fn bad_spans_are_refused() {
        for text in ["", "5", "m", "1.5h", "-3m", "3 m", "1y", "99999999999999999999s"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }

    #[test]
    fn time_never_wraps() {
        assert_eq!(Time::MAX + Span::hours(1), Time::MAX);
        assert_eq!(Time(5).since(Time(9)), Span::ZERO);
    }
}
