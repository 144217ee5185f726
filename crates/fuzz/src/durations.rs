//! Durations and instants: parse, print and parse again give the same value.

use muster_api::instant;
use muster_core::time::Span;

use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "durations",
    run,
    words: &[
        "w",
        "d",
        "h",
        "m",
        "s",
        "ms",
        "0",
        "1",
        "18446744073709551615",
        "213503982334",
        "1h30m",
        "2026-12-01T08:00:00Z",
        "+01:00",
        "-",
        "T",
        ":",
        "Z",
        ".999999999",
        "9999-12-31T23:59:59Z",
        "-009999-01-01T00:00:00Z",
        "[Europe/Berlin]",
        "é",
    ],
    rounds: 120_000,
};

fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(span) = text.parse::<Span>() {
        let written = span.to_string();
        assert_eq!(written.parse::<Span>(), Ok(span), "{text} is written {written}");
    }
    if let Ok(at) = instant(text) {
        // Adding to a far instant must not overflow.
        let _ = (at + Span(u64::MAX), at.since(muster_core::time::Time::ZERO), at.as_secs_f64());
    }
}
