//! Schedules: a calendar's next start is later, its last start is not, and none is skipped between them.

use muster_core::calendar::Calendar;

use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "cron",
    run,
    words: &[
        "* * * * *",
        "0 8 * * 1-5",
        "*/5",
        "1-5",
        ",",
        "L",
        "W",
        "#2",
        "?",
        "@daily",
        "MON",
        "JAN",
        "31 2",
        "30 2 31 3",
        "-",
        "/",
        "\n",
        "UTC",
        "Europe/Berlin",
        "America/Sao_Paulo",
        "Pacific/Apia",
        "Africa/Casablanca",
        "Australia/Lord_Howe",
        "253402207200000",
        "-377705023201000",
        "9223372036854775807",
        "0",
        "1774746000000",
        "59",
        "60",
        "23",
        "24",
        "7",
    ],
    rounds: 1_000,
};

/// A cron expression, a time zone and an instant in Unix milliseconds, each on a line.
fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut lines = text.splitn(3, '\n');
    let (cron, zone) = (lines.next().unwrap_or_default(), lines.next().unwrap_or("UTC"));
    let Ok(calendar) = Calendar::new(cron, zone) else { return };
    let now: i64 =
        lines.next().and_then(|text| text.trim().parse().ok()).unwrap_or(1_774_746_000_000);
    if let Some(last) = calendar.last(now) {
        assert!(last <= now, "last start {last} after {now}");
    }
    let Some(next) = calendar.next(now) else { return };
    assert!(next > now, "next start {next} not after {now}");
    if let Some(last) = calendar.last(next) {
        assert!(
            last > now || last == next,
            "start {next} is not the last at its own instant, {last} is"
        );
    }
}
