//! Reads the capacity that a pool keeps ready ahead of demand: warm nodes, a buffer, schedules, a forecast.

use muster_core::calendar::Calendar;
use muster_core::proactive::{Buffer, Consolidate, ForecastSpec, Proactive, Schedule, Timeouts};
use muster_core::time::Span;

use crate::yaml::fields::Fields;
use crate::yaml::value::Value;

/// The largest number of nodes that a pool can be configured to keep.
const MAX_NODES: u32 = 1_000_000;

/// Reads a pool's proactive fields. A `Reactive` pool keeps nothing, whatever the other fields specify.
pub(crate) fn read(spec: &Fields<'_>) -> Proactive {
    let mut ahead = Proactive::default();
    if let Some(fields) = spec.get("warm").and_then(|value| value.fields()) {
        let nodes = |name| fields.get(name).and_then(|value| value.count(0..=MAX_NODES));
        ahead.warm = nodes("nodes").unwrap_or(0);
        ahead.stopped = nodes("stopped").unwrap_or(0);
        fields.done();
    }
    if let Some(fields) = spec.get("spare").and_then(|value| value.fields()) {
        let percent = fields.need("percent").and_then(|value| value.number(0.0..=100.0));
        ahead.spare = percent.map_or(0, |percent| (percent * 10.0).round() as u32);
        fields.done();
    }
    ahead.buffer = buffer(spec);
    for value in spec.list("schedules") {
        ahead.schedules.extend(schedule(&value));
    }
    let forecast = spec.get("forecast").and_then(|value| value.optional_fields());
    ahead.forecast = forecast.map(|fields| {
        let forecast = forecast_spec(&fields);
        fields.done();
        forecast
    });
    let modes = [("Proactive", true), ("Reactive", false)];
    let mode = spec.get("mode").and_then(|value| value.one_of(&modes));
    if mode.unwrap_or(true) { ahead } else { Proactive::default() }
}

/// Reads what happens to underused nodes.
pub(crate) fn consolidate(spec: &Fields<'_>) -> Consolidate {
    let choices = [
        ("Never", Consolidate::Never),
        ("WhenEmpty", Consolidate::WhenEmpty),
        ("WhenUnderused", Consolidate::WhenUnderused),
    ];
    spec.get("consolidate").and_then(|value| value.one_of(&choices)).unwrap_or_default()
}

/// Reads the timeouts of the stages of a claim.
pub(crate) fn timeouts(spec: &Fields<'_>) -> Timeouts {
    let mut timeouts = Timeouts::default();
    let Some(fields) = spec.get("timeouts").and_then(|value| value.fields()) else {
        return timeouts;
    };
    for (name, stage) in [
        ("launch", &mut timeouts.launch),
        ("register", &mut timeouts.register),
        ("gpus", &mut timeouts.gpus),
    ] {
        *stage = fields.span_above_zero(name).unwrap_or(*stage);
    }
    fields.done();
    timeouts
}

fn buffer(spec: &Fields<'_>) -> Option<Buffer> {
    let value = spec.get("buffer")?;
    let fields = value.fields()?;
    fields.exclusive("nodes", "percent");
    let nodes = fields.get("nodes").and_then(|value| value.count(0..=MAX_NODES));
    let percent = fields.get("percent").and_then(|value| value.number(0.0..=100.0));
    if fields.get("nodes").is_none() && fields.get("percent").is_none() {
        value.error("must say `nodes` or `percent`");
    }
    fields.done();
    let permille = |percent: f64| Buffer::Permille((percent * 10.0).round() as u32);
    nodes.map(Buffer::Nodes).or(percent.map(permille))
}

fn forecast_spec(fields: &Fields<'_>) -> ForecastSpec {
    let default = ForecastSpec::default();
    let mut seasons = Vec::new();
    for season in fields.list("seasons") {
        match season.parsed::<Span>("a duration such as 24h") {
            Some(span) if span < Span::hours(2) => season.error("must be at least 2h"),
            Some(span) => seasons.push(span),
            None => {}
        }
    }
    let level = fields.get("serviceLevel").and_then(|value| value.number(0.0..=1.0));
    let only_tell = fields.get("forecastOnly").and_then(|value| value.flag());
    ForecastSpec {
        seasons: if seasons.is_empty() { default.seasons } else { seasons },
        service_level: level.map_or(default.service_level, |level| (level * 1e3).round() as u32),
        cost_of_waiting: fields.get("costOfWaiting").and_then(|value| value.money()),
        max_nodes: fields.get("maxNodes").and_then(|value| value.count(1..=MAX_NODES)),
        min_history: fields.span("minHistory").unwrap_or(default.min_history),
        only_tell: only_tell.unwrap_or(false),
    }
}

fn schedule(value: &Value<'_>) -> Option<Schedule> {
    let fields = value.fields()?;
    let (cron, zone) = (fields.need("cron"), fields.get("timezone"));
    let cron_text = cron.as_ref().and_then(Value::text);
    let zone_text = match &zone {
        Some(value) => value.text(),
        None => Some("UTC"),
    };
    if fields.need("duration").is_some() {
        fields.span_above_zero("duration");
    }
    let duration = fields.get("duration").and_then(|value| value.parsed::<Span>("a duration"));
    let nodes = fields.need("nodes").and_then(|value| value.count(1..=MAX_NODES));
    fields.done();
    // Each is combined with a valid counterpart, so that one mistake is one finding.
    let zone_is = zone_text.map(|zone| Calendar::new("0 0 * * *", zone));
    let cron_is = cron_text.map(|cron| Calendar::new(cron, "UTC"));
    for (value, text, calendar) in [(&zone, zone_text, zone_is), (&cron, cron_text, cron_is)] {
        if let (Some(value), Some(text), Some(Err(why))) = (value, text, calendar) {
            value.error(format!("`{text}` {why}"));
        }
    }
    let (cron, timezone) = (cron_text?, zone_text?);
    Calendar::new(cron, timezone).ok()?;
    let schedule = Schedule {
        cron: cron.into(),
        timezone: timezone.into(),
        duration: duration?,
        nodes: nodes?,
    };
    Some(schedule)
}

#[cfg(test)]
mod tests {
    use muster_core::calendar::CalendarError;

    use crate::manifest::pool::proactive::*;

    #[test]
    fn cron_accepts_only_the_common_syntax() {
        let is_cron = |text| Calendar::new(text, "UTC").is_ok();
        for good in ["0 8 * * 1-5", "*/15 0-6,22 1 jan MON", "0 0 * * 7"] {
            assert!(is_cron(good), "{good}");
        }
        for bad in ["", "0 8 * *", "60 8 * * *", "0 8 * * */0", "+1 8 * * *", "@daily", "0 8 * 0 *"]
        {
            assert!(!is_cron(bad), "{bad}");
        }
    }

    #[test]
    fn time_zones_are_known_without_a_database_on_the_machine() {
        let zone = |name| Calendar::new("0 8 * * *", name).err();
        assert_eq!((zone("Europe/Berlin"), zone("UTC")), (None, None));
        assert_eq!(zone("Europe/Atlantis"), Some(CalendarError::Zone));
    }
}
