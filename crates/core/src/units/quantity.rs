//! Kubernetes quantities, read and printed exactly: `100m`, `1.5Gi`, `2e3`, `8`.
//!
//! A quantity is a whole number of billionths, because that is the finest the format goes. Printing gives
//! the canonical form that the Kubernetes API gives: no fraction, the largest suffix that keeps the number
//! whole. Unlike Kubernetes, a value too large to hold is refused instead of being capped in silence.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Which family of suffixes a quantity was written with; it is printed with the same family.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Form {
    /// `k`, `M`, `G`, ... and no suffix.
    Decimal,
    /// `Ki`, `Mi`, `Gi`, ...
    Binary,
    /// `e3`, `E-6`, ...
    Exponent,
}

/// An exact Kubernetes quantity.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    nanos: i128,
    form: Form,
}

const NANOS: i128 = 1_000_000_000;
/// The largest magnitude Kubernetes can represent.
const MAX: i128 = i64::MAX as i128;
const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// Why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// Nothing was written.
    #[error("a quantity is needed, such as 8, 500m or 80Gi")]
    Empty,
    /// Not a number, or an unknown suffix.
    #[error(
        "`{0}` is not a quantity: write a number with an optional suffix m, k, M, G, T, Ki, Mi, Gi or Ti, such as 8, 500m or 80Gi"
    )]
    Malformed(String),
    /// Beyond 2^63-1.
    #[error("`{0}` is too large a quantity")]
    TooLarge(String),
}

impl Quantity {
    /// A whole number.
    pub fn whole(value: i64) -> Self {
        Self { nanos: i128::from(value) * NANOS, form: Form::Decimal }
    }
    /// A number of bytes, printed with binary suffixes.
    pub fn bytes(value: i64) -> Self {
        Self { nanos: i128::from(value) * NANOS, form: Form::Binary }
    }
    /// A number of thousandths.
    pub fn milli(value: u64) -> Self {
        Self { nanos: i128::from(value) * (NANOS / 1_000), form: Form::Decimal }
    }
    /// Whether it is below zero.
    pub fn is_negative(self) -> bool {
        self.nanos < 0
    }
    /// The value in whole units, rounded up as Kubernetes rounds requests; `None` below zero.
    pub fn ceil_units(self) -> Option<u64> {
        self.ceil_of(NANOS)
    }
    /// The value in thousandths, rounded up; `None` below zero or when it does not fit.
    pub fn ceil_milli(self) -> Option<u64> {
        self.ceil_of(NANOS / 1_000)
    }

    fn ceil_of(self, unit: i128) -> Option<u64> {
        u64::try_from((self.nanos + unit - 1).div_euclid(unit)).ok().filter(|_| self.nanos >= 0)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}
impl Eq for Quantity {}
impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let malformed = || QuantityError::Malformed(text.to_owned());
        let too_large = || QuantityError::TooLarge(text.to_owned());
        if text.is_empty() {
            return Err(QuantityError::Empty);
        }
        let (negative, unsigned) = match text.as_bytes()[0] {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let number_len =
            unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(number_len);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(malformed());
        }
        let (scale, form) = parse_suffix(suffix).ok_or_else(malformed)?;
        let magnitude = scaled(whole, fraction, scale).ok_or_else(too_large)?;
        if magnitude > MAX * NANOS {
            return Err(too_large());
        }
        Ok(Self { nanos: if negative { -magnitude } else { magnitude }, form })
    }
}

/// What a number is multiplied by.
#[derive(Clone, Copy)]
enum Scale {
    Ten(i32),
    Two(u32),
}

fn parse_suffix(suffix: &str) -> Option<(Scale, Form)> {
    if let Some((_, power)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some((Scale::Ten(*power), Form::Decimal));
    }
    if let Some(step) = BINARY.iter().position(|name| *name == suffix) {
        return Some((Scale::Two(10 * (step as u32 + 1)), Form::Binary));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if digits.is_empty() || digits.len() > 4 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some((Scale::Ten(exponent.strip_prefix('+').unwrap_or(exponent).parse().ok()?), Form::Exponent))
}

/// `whole.fraction` times `scale`, in billionths, rounded up; `None` when it does not fit.
fn scaled(whole: &str, fraction: &str, scale: Scale) -> Option<i128> {
    let fraction = fraction.trim_end_matches('0');
    let digits: String = whole.chars().chain(fraction.chars()).collect();
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some(0);
    }
    let (twos, tens) = match scale {
        Scale::Ten(power) => (0, power),
        Scale::Two(power) => (power, 0),
    };
    let tens = tens + 9 - i32::try_from(fraction.len()).ok()?;
    if digits.len() > 37 {
        // Only a very long fraction gets here legally; its tail is below a billionth and rounds up.
        let kept = &digits[..37];
        let dropped = i32::try_from(digits.len() - 37).ok()?;
        return shift(kept.parse::<i128>().ok()?.checked_add(1)?, twos, tens + dropped);
    }
    shift(digits.parse().ok()?, twos, tens)
}

fn shift(mantissa: i128, twos: u32, tens: i32) -> Option<i128> {
    let value = mantissa.checked_mul(1i128.checked_shl(twos)?)?;
    if tens >= 0 {
        return value.checked_mul(10i128.checked_pow(tens.unsigned_abs())?);
    }
    match 10i128.checked_pow(tens.unsigned_abs()) {
        Some(divisor) => Some(value / divisor + i128::from(value % divisor != 0)),
        None => Some(1), // smaller than a billionth, and not zero
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.nanos < 0 { "-" } else { "" };
        let magnitude = self.nanos.abs();
        if magnitude == 0 {
            return f.pad("0");
        }
        let binary =
            self.form == Form::Binary && magnitude >= 1024 * NANOS && magnitude % NANOS == 0;
        if binary {
            let (mut number, mut steps) = (magnitude / NANOS, 0);
            while number % 1024 == 0 && steps < BINARY.len() {
                number /= 1024;
                steps += 1;
            }
            let suffix = if steps == 0 { "" } else { BINARY[steps - 1] };
            return f.pad(&format!("{sign}{number}{suffix}"));
        }
        let (mut number, mut power) = (magnitude, -9);
        while number % 1_000 == 0 && power < 18 {
            number /= 1_000;
            power += 3;
        }
        match self.form {
            Form::Exponent if power == 0 => f.pad(&format!("{sign}{number}")),
            Form::Exponent => f.pad(&format!("{sign}{number}e{power}")),
            Form::Decimal | Form::Binary => {
                let suffix = DECIMAL.iter().find(|(_, p)| *p == power).map_or("", |(name, _)| name);
                f.pad(&format!("{sign}{number}{suffix}"))
            }
        }
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn prints_the_canonical_form() {
        for (written, canonical) in [
            ("0", "0"),
            ("-0", "0"),
            ("100m", "100m"),
            ("0.1", "100m"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("1.5", "1500m"),
            ("1000", "1k"),
            ("1024", "1024"),
            ("1.5Gi", "1536Mi"),
            ("1024Mi", "1Gi"),
            ("1000Gi", "1000Gi"),
            ("512Ki", "512Ki"),
            ("0.5Ki", "512"),
            ("1e3", "1e3"),
            ("1E3", "1e3"),
            ("12e-1", "1200e-3"),
            ("5e0", "5"),
            ("-1.5", "-1500m"),
            ("+7", "7"),
            (".5", "500m"),
            ("3.", "3"),
            ("0.0000000001", "1n"),
            ("1n", "1n"),
            ("9223372036854775807", "9223372036854775807"),
            ("1.0001Ki", "1024102400u"),
        ] {
            let parsed: Quantity = written.parse().unwrap_or_else(|e| panic!("{written}: {e}"));
            assert_eq!(parsed.to_string(), canonical, "{written}");
        }
    }

    #[test]
    fn invalid_quantities_are_refused() {
        for text in [
            "", "-", "Gi", "1.2.3", "8 GB", "1GB", "abc", "1e", "1e+", "--1", "1Kib", "٣",
            "1e99999", "1i",
        ] {
            assert!(text.parse::<Quantity>().is_err(), "{text}");
        }
        assert!(matches!(
            "9223372036854775808".parse::<Quantity>(),
            Err(QuantityError::TooLarge(_))
        ));
        assert!(matches!("16Ei".parse::<Quantity>(), Err(QuantityError::TooLarge(_))));
        assert!(matches!("1e400".parse::<Quantity>(), Err(QuantityError::TooLarge(_))));
    }

    #[test]
    fn requests_round_up() {
        assert_eq!("0.1".parse::<Quantity>().unwrap().ceil_units(), Some(1));
        assert_eq!("100u".parse::<Quantity>().unwrap().ceil_milli(), Some(1));
        assert_eq!("-1".parse::<Quantity>().unwrap().ceil_units(), None);
    }

    proptest! {
        #[test]
        fn printed_quantity_parses_to_the_same_value(
            number in 0u64..10_000_000,
            fraction in 0u32..1_000,
            suffix in prop::sample::select(vec!["", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e3", "e-3"]),
        ) {
            let first: Quantity = format!("{number}.{fraction:03}{suffix}").parse().unwrap();
            let again: Quantity = first.to_string().parse().unwrap();
            prop_assert_eq!(first, again);
            prop_assert_eq!(first.to_string(), again.to_string());
        }
    }
}
