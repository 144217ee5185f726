//! Calendars: when a schedule begins, in the local time of a time zone.
//!
//! A cron expression is in local time, which shifts twice a year. A start in an hour that a zone skips comes after the
//! shift; one in an hour that comes twice comes once.

use std::str::FromStr;

use croner::Cron;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Why a text is not a calendar.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CalendarError {
    /// Not the five fields common to every cron.
    #[error("is not a schedule: write minute, hour, day, month and weekday, such as `0 8 * * 1-5`")]
    Cron,
    /// Five fields that match no day, such as 31 February.
    #[error("is a schedule that never begins: no day is like that")]
    Never,
    /// No such time zone.
    #[error("is not a time zone: write one such as `Europe/Berlin` or `UTC`")]
    Zone,
}

/// A recurring start.
#[derive(Clone, Debug)]
pub struct Calendar {
    cron: Cron,
    zone: TimeZone,
}

impl Calendar {
    /// A calendar from a cron expression and the name of a time zone. The zones are built in: the machine need not
    /// have them.
    ///
    /// # Errors
    /// When either is invalid.
    pub fn new(cron: &str, zone: &str) -> Result<Self, CalendarError> {
        let zone = TimeZone::get(zone).map_err(|_| CalendarError::Zone)?;
        if cron.split_whitespace().count() != 5 {
            return Err(CalendarError::Cron);
        }
        let cron = Cron::from_str(cron).map_err(|_| CalendarError::Cron)?;
        let calendar = Self { cron, zone };
        // Finding that there is no start takes a walk through thousands of years: done once, and not in every cycle.
        if calendar.next(0).is_none() {
            return Err(CalendarError::Never);
        }
        Ok(calendar)
    }

    /// The last start at or before an instant, both in milliseconds of Unix time.
    pub fn last(&self, unix_ms: i64) -> Option<i64> {
        let at = Timestamp::from_millisecond(unix_ms).ok()?.to_zoned(self.zone.clone());
        let last = self.cron.find_previous_occurrence(&at, true).ok()?;
        Some(last.timestamp().as_millisecond())
    }

    /// The first start after an instant, both in milliseconds of Unix time.
    pub fn next(&self, unix_ms: i64) -> Option<i64> {
        let at = Timestamp::from_millisecond(unix_ms).ok()?.to_zoned(self.zone.clone());
        let next = self.cron.find_next_occurrence(&at, false).ok()?;
        Some(next.timestamp().as_millisecond())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unix_ms(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_millisecond()
    }
    fn berlin(cron: &str) -> Calendar {
        Calendar::new(cron, "Europe/Berlin").unwrap()
    }

    #[test]
    fn daily_start_keeps_its_local_time_across_dst() {
        let calendar = berlin("0 8 * * *");
        // Winter: an hour ahead of UTC. Summer, from 29 March 2026: two.
        assert_eq!(
            calendar.next(unix_ms("2026-03-28T00:00:00Z")),
            Some(unix_ms("2026-03-28T07:00:00Z"))
        );
        assert_eq!(
            calendar.next(unix_ms("2026-03-29T00:00:00Z")),
            Some(unix_ms("2026-03-29T06:00:00Z"))
        );
        assert_eq!(
            calendar.last(unix_ms("2026-10-25T23:00:00Z")),
            Some(unix_ms("2026-10-25T07:00:00Z"))
        );
    }

    #[test]
    fn start_in_a_skipped_hour_is_not_lost() {
        // On 29 March 2026 there is no 02:30 in Berlin: 01:59 is followed by 03:00.
        let next = berlin("30 2 * * *").next(unix_ms("2026-03-28T12:00:00Z")).unwrap();
        let after = unix_ms("2026-03-29T01:00:00Z");
        assert!((after..=after + 3_600_000).contains(&next), "{next}");
    }

    #[test]
    fn start_in_a_repeated_hour_comes_once() {
        // On 25 October 2026 there are two 02:30 in Berlin.
        let calendar = berlin("30 2 * * *");
        let first = calendar.next(unix_ms("2026-10-24T12:00:00Z")).unwrap();
        let second = calendar.next(first).unwrap();
        assert!(second - first >= 24 * 3_600_000, "{first} and {second} are one night");
    }

    #[test]
    fn last_start_precedes_the_next_start() {
        let calendar = berlin("0 8 * * 1-5");
        for day in ["2026-01-05", "2026-03-27", "2026-03-30", "2026-07-03", "2026-10-23"] {
            let noon = unix_ms(&format!("{day}T12:00:00Z"));
            let last = calendar.last(noon).unwrap();
            assert_eq!(calendar.next(last - 1), Some(last), "{day}");
            assert_eq!(calendar.last(last), Some(last), "{day}");
        }
    }

    #[test]
    fn invalid_calendars_are_refused() {
        assert_eq!(Calendar::new("0 8 * *", "UTC").err(), Some(CalendarError::Cron));
        assert_eq!(Calendar::new("0 25 * * *", "UTC").err(), Some(CalendarError::Cron));
        for never in ["0 0 31 2 *", "0 0 31 4,6,9,11 *", "0 0 21 2 +"] {
            assert_eq!(Calendar::new(never, "UTC").err(), Some(CalendarError::Never), "{never}");
        }
        assert!(Calendar::new("0 0 29 2 *", "UTC").is_ok());
        assert_eq!(Calendar::new("0 8 * * *", "Europe/Atlantis").err(), Some(CalendarError::Zone));
    }
}
