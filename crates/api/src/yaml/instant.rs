//! Reads instants: a date and a time with an offset from UTC.

use jiff::Timestamp;
use jiff::civil::DateTime;
use muster_core::time::Time;

/// Why a text is not an instant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InstantError {
    /// A local date and time without an offset from UTC.
    #[error("has no offset from UTC: write {0}Z, or {0}+01:00 for an hour ahead of it")]
    NoOffset(String),
    /// Not a date and a time at all.
    #[error("must be a date and time with an offset, such as 2026-12-01T08:00:00Z")]
    Malformed,
}

/// Reads an instant, in milliseconds of Unix time; finer digits are cut off.
pub fn instant(text: &str) -> Result<Time, InstantError> {
    if let Ok(instant) = text.parse::<Timestamp>() {
        return Ok(Time(instant.as_millisecond()));
    }
    let local = text.parse::<DateTime>().map_err(|_| InstantError::Malformed)?.to_string();
    // The suggestion is made only if it would be valid itself.
    match format!("{local}Z").parse::<Timestamp>() {
        Ok(_) => Err(InstantError::NoOffset(local)),
        Err(_) => Err(InstantError::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use crate::yaml::instant::*;

    #[test]
    fn instant_is_the_same_in_every_offset() {
        let eight = Ok(Time(1_796_112_000_000));
        for text in ["2026-12-01T08:00:00Z", "2026-12-01 09:00+01:00", "2026-12-01T08:00:00.0009Z"]
        {
            assert_eq!(instant(text), eight, "{text}");
        }
        assert_eq!(instant("1970-01-01T00:00:00Z"), Ok(Time::ZERO));
    }

    #[test]
    fn instant_without_an_offset_gets_a_suggestion() {
        for text in ["2026-12-01T08:00:00", "2026-12-01 08:00"] {
            let refusal = InstantError::NoOffset("2026-12-01T08:00:00".into());
            assert_eq!(instant(text), Err(refusal), "{text}");
        }
        let date = instant("2026-12-01").unwrap_err().to_string();
        assert!(date.contains("write 2026-12-01T00:00:00Z, "), "{date}");
        for text in ["", "tomorrow", "2026-02-30T08:00:00Z", "08:00", "9999-12-31T23:59:59"] {
            assert_eq!(instant(text), Err(InstantError::Malformed), "{text}");
        }
    }
}
