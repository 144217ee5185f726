//! Values of a trace, read strictly: numbers that are numbers, times that fit.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use muster_core::money::Money;
use muster_core::quantity::{Quantity, QuantityError};
use muster_core::time::Span;

/// Some 30,000 years: far beyond any log, also one that counts from 1970, and far below overflow.
const MOST_SECS: f64 = 1e12;
/// Enough of a bad value to find it by.
const SHOWN: usize = 40;

/// What is wrong with a value; reads on from "`value` ...".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CellError {
    /// A required value is empty.
    #[error("is empty, and this column is required")]
    Empty,
    /// Not a whole number.
    #[error("is not a whole number")]
    NotWhole,
    /// Not a number of seconds.
    #[error("is not a number of seconds")]
    NotSeconds,
    /// Not a time in any notation.
    #[error("is neither a number of seconds nor a date and time")]
    NotTime,
    /// Not an amount of money.
    #[error("is not an amount of money")]
    NotMoney,
    /// Beyond what a trace can say.
    #[error("is too large")]
    TooLarge,
    /// Below zero, where that means nothing.
    #[error("is below zero")]
    Negative,
    /// Zero, where there must be at least one.
    #[error("must be at least 1")]
    Zero,
    /// Not a quantity.
    #[error("cannot be read: {0}")]
    Quantity(#[from] QuantityError),
    /// One and a half GPUs.
    #[error("is neither a part of one GPU nor a whole number of GPUs")]
    BrokenGpus,
    /// More GPUs than a node can have.
    #[error("is more GPUs than a node can have ({most})")]
    TooManyGpus {
        /// How many it can have.
        most: usize,
    },
    /// The gang needs more members than it may have.
    #[error("is above the row's members ({members})")]
    AboveMembers {
        /// How many it may have.
        members: u32,
    },
    /// A share that is not of one GPU.
    #[error("is not a share of a GPU: 1 to 1000 thousandths, below 1000 only of a single one")]
    NotShare,
    /// Two gangs of one name.
    #[error("is also the name on line {line}")]
    NameTaken {
        /// Where the other is.
        line: u64,
    },
}

/// A whole number that may be negative.
pub(crate) fn whole(text: &str) -> Result<i64, CellError> {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    text.parse().map_err(|error: std::num::ParseIntError| match error.kind() {
        PosOverflow | NegOverflow => CellError::TooLarge,
        _ => CellError::NotWhole,
    })
}

/// How many there are, at least one.
pub(crate) fn count(text: &str) -> Result<u32, CellError> {
    match whole(text)? {
        ..0 => Err(CellError::Negative),
        0 => Err(CellError::Zero),
        number => u32::try_from(number).map_err(|_| CellError::TooLarge),
    }
}

/// Seconds, whole or with a fraction, to the nearest millisecond; `None` when below zero, which in many logs
/// means "unknown".
pub(crate) fn seconds_if_known(text: &str) -> Result<Option<Span>, CellError> {
    let secs = match text.parse::<i32>() {
        Ok(whole) => f64::from(whole),
        Err(_) => text.parse::<f64>().map_err(|_| CellError::NotSeconds)?,
    };
    if !secs.is_finite() {
        Err(CellError::NotSeconds)
    } else if secs > MOST_SECS {
        Err(CellError::TooLarge)
    } else {
        Ok((secs >= 0.0).then(|| Span::from_secs_f64(secs)))
    }
}

/// Seconds that must be there.
pub(crate) fn seconds(text: &str) -> Result<Span, CellError> {
    seconds_if_known(text)?.ok_or(CellError::Negative)
}

/// A point in time as a log may write it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Moment {
    /// Seconds, counted from wherever the log counts.
    Count(Span),
    /// A date, as what has passed since 1970.
    Date(Span),
}

impl Moment {
    /// What has passed, wherever it is counted from.
    pub(crate) fn span(self) -> Span {
        match self {
            Self::Count(span) | Self::Date(span) => span,
        }
    }
}

/// Seconds, or a date and time such as `2017-10-03 18:04:11`; without an offset it is taken as UTC, as only
/// differences count. `None` when below zero, or when the log says `None` or `null`.
pub(crate) fn moment_if_known(text: &str) -> Result<Option<Moment>, CellError> {
    if ["None", "null", "NaN", "nan"].contains(&text) {
        return Ok(None);
    }
    let date = || {
        let instant = text.parse::<Timestamp>().or_else(|_| {
            text.parse::<DateTime>()?.to_zoned(TimeZone::UTC).map(|zoned| zoned.timestamp())
        });
        let ms = instant.map_err(|_| CellError::NotTime)?.as_millisecond();
        Ok(u64::try_from(ms).ok().map(|ms| Moment::Date(Span(ms))))
    };
    match seconds_if_known(text) {
        Err(CellError::NotSeconds) => date(),
        known => Ok(known?.map(Moment::Count)),
    }
}

/// A point in time that must be there.
pub(crate) fn moment(text: &str) -> Result<Moment, CellError> {
    moment_if_known(text)?.ok_or(CellError::Negative)
}

/// An amount of money, whole or with a fraction.
pub(crate) fn money(text: &str) -> Result<Money, CellError> {
    let units = text.parse::<f64>().ok().filter(|units| units.is_finite());
    match units.ok_or(CellError::NotMoney)? {
        ..0.0 => Err(CellError::Negative),
        units => Money::from_units(units).ok_or(CellError::TooLarge),
    }
}

/// A quantity in thousandths, rounded up.
pub(crate) fn milli(text: &str) -> Result<u64, CellError> {
    let quantity: Quantity = text.parse()?;
    quantity.ceil_milli().ok_or_else(|| sign_or_size(quantity))
}

/// A quantity in whole units, rounded up.
pub(crate) fn units(text: &str) -> Result<u64, CellError> {
    let quantity: Quantity = text.parse()?;
    quantity.ceil_units().ok_or_else(|| sign_or_size(quantity))
}

fn sign_or_size(quantity: Quantity) -> CellError {
    if quantity.is_negative() { CellError::Negative } else { CellError::TooLarge }
}

/// A bad value as it is shown in an error: escaped, and cut short when long.
pub(crate) fn shortened(value: &str) -> String {
    let shown: String = value.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if value.chars().nth(SHOWN).is_some() { shown + "..." } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_kept_to_the_millisecond() {
        for (text, ms) in [
            ("0", 0),
            ("90", 90_000),
            ("1.5", 1_500),
            ("0.0004", 0),
            ("1700000000", 1_700_000_000_000),
        ] {
            assert_eq!(seconds(text), Ok(Span(ms)), "{text}");
        }
        assert_eq!(seconds_if_known("-1"), Ok(None));
        for text in ["nan", "inf", "-inf", "-"] {
            assert_eq!(seconds_if_known(text), Err(CellError::NotSeconds), "{text}");
        }
        for text in ["", "x", "1s", "nan", "inf", "1e13", "-1", "-inf"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn moment_is_a_count_or_a_date() {
        assert_eq!(moment("90.5"), Ok(Moment::Count(Span(90_500))));
        for text in ["1970-01-02 00:00:01", "1970-01-02T00:00:01Z", "1970-01-02T01:00:01+01:00"] {
            assert_eq!(moment(text), Ok(Moment::Date(Span(86_401_000))), "{text}");
        }
        for unknown in ["-1", "None", "null", "1969-12-31 23:59:59"] {
            assert_eq!(moment_if_known(unknown), Ok(None), "{unknown}");
        }
        for text in ["", "yesterday", "2017-13-01 00:00:00", "12:00"] {
            assert_eq!(moment(text), Err(CellError::NotTime), "{text}");
        }
        assert_eq!(moment("1e13"), Err(CellError::TooLarge));
    }

    #[test]
    fn counts_are_whole_and_at_least_one() {
        assert_eq!(count("64"), Ok(64));
        assert_eq!(count("0"), Err(CellError::Zero));
        assert_eq!(count("-2"), Err(CellError::Negative));
        assert_eq!(count("1.0"), Err(CellError::NotWhole));
        assert_eq!(count("5000000000"), Err(CellError::TooLarge));
        assert_eq!(count("99999999999999999999"), Err(CellError::TooLarge));
    }

    #[test]
    fn money_is_kept_to_the_millionth() {
        assert_eq!(money("40"), Ok(Money(40_000_000)));
        assert_eq!(money("0.0000014"), Ok(Money(1)));
        assert_eq!(money("-0"), Ok(Money::ZERO));
        assert_eq!(money("-0.01"), Err(CellError::Negative));
        assert_eq!(money("1e300"), Err(CellError::TooLarge));
        for text in ["", "free", "$5", "nan", "inf", "-inf"] {
            assert_eq!(money(text), Err(CellError::NotMoney), "{text}");
        }
    }

    #[test]
    fn long_bad_value_is_cut_short() {
        assert_eq!(shortened("a\tb"), "a\\tb");
        assert_eq!(shortened(&"9".repeat(41)), format!("{}...", "9".repeat(40)));
    }
}
