//! `muster usage`.

use clap::{Args as ClapArgs, ValueEnum};
use jiff::Timestamp;
use muster_api::figures::grouped;
use muster_api::instant;
use muster_core::time::{Span, Time};
use muster_server::Usage;

use crate::client::connection::address::Query;
use crate::client::connection::api::Items;
use crate::client::connection::connect::ConnectOptions;
use crate::client::output::age;
use crate::client::output::printer::Answer;
use crate::client::output::table::plain;
use crate::stdout;

/// Show how much was used by queue, user, gang or day, and what it cost.
///
/// Times are instants such as 2026-12-01T00:00:00Z, dates (from their beginning in UTC), or spans such as 7d or 12h,
/// which are counted back from now.
#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// What to sum by
    #[arg(long, value_enum, default_value_t = By::Queue)]
    by: By,
    /// The start; the beginning of the records when absent
    #[arg(long, value_name = "TIME", value_parser = moment)]
    from: Option<Time>,
    /// The end; now when absent
    #[arg(long, value_name = "TIME", value_parser = moment)]
    to: Option<Time>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Answer::Text)]
    output: Answer,
    #[command(flatten)]
    connect: ConnectOptions,
}

#[derive(Clone, Copy, ValueEnum)]
enum By {
    /// Queues
    Queue,
    /// Users
    User,
    /// Gangs
    Gang,
    /// Days, in UTC
    Day,
}

const EXAMPLES: &str = "\
Examples:
  muster usage                                       by queue, ever
  muster usage --by user --from 7d                   the last week
  muster usage --by day --from 2026-11-01 --to 2026-12-01 -o json | jq '.[] | [.key, .cost]'";

/// Parses an instant, a date or a span back from now.
fn moment(text: &str) -> Result<Time, String> {
    moment_from(text, age::now())
}

fn moment_from(text: &str, now: Time) -> Result<Time, String> {
    if let Ok(back) = text.parse::<Span>() {
        return Ok(Time(now.0.saturating_sub(i64::try_from(back.0).unwrap_or(i64::MAX))));
    }
    if let Some(days) = text.strip_suffix('d').and_then(|days| days.parse::<u32>().ok()) {
        return Ok(Time(now.0 - i64::from(days) * 86_400_000));
    }
    let day = || instant(&format!("{text}T00:00:00Z"));
    instant(text).or_else(|error| day().map_err(|_| error)).map_err(|error| error.to_string())
}

pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let api = args.connect.api()?;
    let (by, title) = match args.by {
        By::Queue => ("queue", "QUEUE"),
        By::User => ("user", "USER"),
        By::Gang => ("gang", "GANG"),
        By::Day => ("day", "DAY"),
    };
    let stamp = |at: Time| Timestamp::from_millisecond(at.0).unwrap_or_default();
    let query = Query::default()
        .with("by", by)
        .maybe("from", args.from.map(stamp))
        .maybe("to", args.to.map(stamp));
    let used: Items<Usage> = api.get(&query.on("/v1/usage")).await?;
    if args.output == Answer::Json {
        stdout::line(format_args!("{:#}", serde_json::to_value(&used.items)?));
        return Ok(());
    }
    let titles = [title, "GANGS", "RUNS", "GPU HOURS", "CPU HOURS", "WAITED", "COST"];
    let rows: Vec<_> = used.items.iter().map(row).collect();
    plain(&titles, 6, &rows).iter().for_each(stdout::line);
    Ok(())
}

fn row(usage: &Usage) -> Vec<String> {
    let Usage { key, gangs, runs, gpu_seconds, cpu_seconds, waited_seconds, cost } = usage;
    let hours = |seconds: f64| format!("{:.2}", seconds / 3_600.0);
    let key = if key.is_empty() { "-" } else { key };
    vec![
        key.to_owned(),
        grouped(*gangs),
        grouped(*runs),
        hours(*gpu_seconds),
        hours(*cpu_seconds),
        age::short(Span::from_secs_f64(*waited_seconds)),
        format!("{cost:.2}"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_instants_dates_or_spans_before_now() {
        let now = Time(1_796_112_000_000);
        let at = |text| moment_from(text, now);
        assert_eq!(at("2026-12-01T08:00:00Z"), Ok(now));
        assert_eq!(at("2026-12-01"), Ok(Time(now.0 - 8 * 3_600_000)));
        assert_eq!(at("8h"), Ok(Time(now.0 - 8 * 3_600_000)));
        assert_eq!(at("7d"), Ok(Time(now.0 - 7 * 86_400_000)));
        assert!(at("yesterday").unwrap_err().contains("must be a date and time"));
    }
}
