//! What a pool keeps ready ahead of need: warm nodes, a buffer, schedules, a forecast.
//!
//! All of it is checked, so that a manifest written today stays good; nothing acts on it yet, so nothing is kept.

use crate::fields::Fields;
use crate::value::Value;

/// Nodes a pool can be told to keep.
const MAX_NODES: u32 = 1_000_000;

/// Checks a pool's proactive fields.
pub(crate) fn read(spec: &Fields<'_>) {
    accepted(spec, "warm", |fields| {
        fields.need("nodes").and_then(|value| value.count(0..=MAX_NODES));
    });
    accepted(spec, "buffer", |fields| {
        fields.need("percent").and_then(|value| value.number(0.0..=100.0));
    });
    accepted(spec, "forecast", forecast);
    if let Some(list) = spec.get("schedules") {
        list.not_acted_on();
        for fields in list.list().unwrap_or_default().iter().filter_map(Value::fields) {
            schedule(&fields);
            fields.done();
        }
    }
    if let Some(consolidate) = spec.get("consolidate") {
        consolidate.one_of(&[("Never", ()), ("WhenEmpty", ()), ("WhenUnderused", ())]);
        consolidate.not_acted_on();
    }
}

fn accepted(spec: &Fields<'_>, name: &'static str, check: fn(&Fields<'_>)) {
    let Some(value) = spec.get(name) else { return };
    value.not_acted_on();
    if let Some(fields) = value.fields() {
        check(&fields);
        fields.done();
    }
}

fn forecast(fields: &Fields<'_>) {
    for season in fields.list("seasons") {
        let span = season.parsed::<muster_core::time::Span>("a duration such as 24h");
        if span == Some(muster_core::time::Span::ZERO) {
            season.error("must be longer than 0");
        }
    }
    fields.get("serviceLevel").and_then(|value| value.number(0.0..=1.0));
    fields.get("maxNodes").and_then(|value| value.count(1..=MAX_NODES));
}

fn schedule(fields: &Fields<'_>) {
    fields.need("cron").and_then(|value| {
        value.text_with(
            is_cron,
            "is not a schedule: write minute, hour, day, month and weekday, such as `0 8 * * 1-5`",
        )
    });
    fields.get("timezone").and_then(|value| {
        value.text_with(
            is_time_zone,
            "is not a time zone: write one such as `Europe/Berlin` or `UTC`",
        )
    });
    if fields.need("duration").is_some() {
        fields.span_above_zero("duration");
    }
    fields.need("nodes").and_then(|value| value.count(1..=MAX_NODES));
}

fn is_time_zone(name: &str) -> bool {
    jiff::tz::TimeZone::get(name).is_ok()
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Whether it is a classic five-field cron expression: the part of the language every cron agrees on.
fn is_cron(text: &str) -> bool {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let [minute, hour, day, month, weekday] = fields.as_slice() else { return false };
    is_cron_field(minute, 0..=59, &[])
        && is_cron_field(hour, 0..=23, &[])
        && is_cron_field(day, 1..=31, &[])
        && is_cron_field(month, 1..=12, &MONTHS)
        && is_cron_field(weekday, 0..=7, &WEEKDAYS)
}

fn is_cron_field(field: &str, range: std::ops::RangeInclusive<usize>, names: &[&str]) -> bool {
    let number = |text: &str| {
        let named = names.iter().position(|name| name.eq_ignore_ascii_case(text));
        let named = named.map(|index| index + range.start());
        let digits = text.bytes().all(|b| b.is_ascii_digit());
        named.or(text.parse().ok().filter(|_| digits)).filter(|number| range.contains(number))
    };
    field.split(',').all(|part| {
        let (base, step) =
            part.split_once('/').map_or((part, None), |(base, step)| (base, Some(step)));
        let good_step = step.is_none_or(|step| step.parse::<u8>().is_ok_and(|step| step > 0));
        let good_base = match base.split_once('-') {
            _ if base == "*" => true,
            Some((from, to)) => {
                number(from).is_some_and(|from| number(to).is_some_and(|to| from <= to))
            }
            None => number(base).is_some(),
        };
        good_base && good_step
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cron_is_the_language_every_cron_agrees_on() {
        for good in ["0 8 * * 1-5", "*/15 0-6,22 1 jan MON", "0 0 * * 7"] {
            assert!(is_cron(good), "{good}");
        }
        for bad in [
            "",
            "0 8 * *",
            "60 8 * * *",
            "0 8 * * 5-1",
            "0 8 * * */0",
            "+1 8 * * *",
            "@daily",
            "0 8 * 0 *",
        ] {
            assert!(!is_cron(bad), "{bad}");
        }
    }

    #[test]
    fn time_zones_are_known_without_the_machine_having_them() {
        assert!(is_time_zone("Europe/Berlin") && is_time_zone("UTC"));
        assert!(!is_time_zone("Europe/Atlantis"));
    }
}
