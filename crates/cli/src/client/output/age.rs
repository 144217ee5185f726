//! Ages and times for tables.

use jiff::Timestamp;
use muster_api::figures;
use muster_core::time::{Span, Time};
use serde_json::Value;

/// The current time.
pub(crate) fn now() -> Time {
    Time(Timestamp::now().as_millisecond())
}

/// `45s`, `3m20s`, `5h10m`, `12d`: the precision of a table.
pub(crate) fn short(span: Span) -> String {
    let days = span.0 / 86_400_000;
    if days >= 2 { format!("{days}d") } else { figures::span(span) }
}

/// A time field of an object.
pub(crate) fn instant(object: &Value, field: &str) -> Option<Time> {
    muster_api::instant(object.pointer(field)?.as_str()?).ok()
}

/// The age of a time field; empty when it is missing.
pub(crate) fn since(object: &Value, field: &str, now: Time) -> String {
    instant(object, field).map_or_else(String::new, |at| short(now.since(at)))
}

/// `in 3m20s`, or `now` if the time has passed.
pub(crate) fn until(at: Time, now: Time) -> String {
    match at.since(now) {
        Span::ZERO => "now".to_owned(),
        span => format!("in {}", short(span)),
    }
}

/// A date and time for people, in UTC.
pub(crate) fn clock(at: Time) -> String {
    Timestamp::from_millisecond(at.0)
        .map_or_else(|_| "?".to_owned(), |at| at.strftime("%Y-%m-%d %H:%M:%SZ").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short_and_past_times_are_now() {
        let cases =
            [(45, "45s"), (200, "3m20s"), (18_600, "5h10m"), (100_000, "27h46m"), (180_000, "2d")];
        for (secs, text) in cases {
            assert_eq!(short(Span::secs(secs)), text);
        }
        let now = Time(1_000_000);
        assert_eq!(until(Time(1_005_000), now), "in 5s");
        assert_eq!(until(Time(0), now), "now");
        assert_eq!(clock(Time(1_796_112_000_000)), "2026-12-01 08:00:00Z");
    }

    #[test]
    fn missing_or_malformed_instant_has_no_age() {
        let object = serde_json::json!({"a": "1970-01-01T00:00:10Z", "b": "yesterday"});
        let age = |field| since(&object, field, Time(70_000));
        assert_eq!([age("/a"), age("/b"), age("/c")], ["1m00s", "", ""]);
    }
}
