//! `muster audit`.

use clap::Args as ClapArgs;
use jiff::Timestamp;
use muster_server::AuditRecord;

use crate::client::connection::address::Query;
use crate::client::connection::api::Items;
use crate::client::connection::connect::ConnectOptions;
use crate::client::output::printer::Answer;
use crate::client::output::table::plain;
use crate::stdout;

/// Show who did what to which objects, and with what outcome. Only admins may read it.
#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Only the requests of this caller
    #[arg(long, value_name = "NAME")]
    caller: Option<String>,
    /// The number of records, newest last
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    last: u32,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Answer::Text)]
    output: Answer,
    #[command(flatten)]
    connect: ConnectOptions,
}

const EXAMPLES: &str = "\
Examples:
  muster audit                               the last 50
  muster audit --caller alice --last 500 -o json | jq -r '.[].object'";

pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let api = args.connect.api()?;
    let query = Query::default().maybe("caller", args.caller.as_deref()).with("limit", args.last);
    let found: Items<AuditRecord> = api.get(&query.on("/v1/audit")).await?;
    if args.output == Answer::Json {
        stdout::line(format_args!("{:#}", serde_json::to_value(&found.items)?));
        return Ok(());
    }
    let rows: Vec<_> = found.items.iter().map(row).collect();
    plain(&["AT", "CALLER", "VERB", "OUTCOME", "OBJECT"], 0, &rows).iter().for_each(stdout::line);
    Ok(())
}

fn row(record: &AuditRecord) -> Vec<String> {
    let AuditRecord { at, caller, verb, object, outcome, times } = record;
    let at = Timestamp::from_millisecond(at.0.0).unwrap_or_default();
    let times = times.map(|times| format!(" ({times} times)")).unwrap_or_default();
    let printable = |text: &str| text.replace(char::is_control, "?");
    vec![
        at.to_string(),
        printable(caller),
        printable(verb),
        format!("{outcome}{times}"),
        printable(object),
    ]
}
