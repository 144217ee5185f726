//! `muster what-if`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use muster_server::WhatIf;

use crate::client::change::manifests;
use crate::client::connection::api::{Items, Payload};
use crate::client::connection::connect::ConnectOptions;
use crate::client::output::age;
use crate::client::output::printer::Answer;
use crate::client::output::table::plain;
use crate::stdout;

/// Say when gangs would start if they were submitted now, and what would be bought for them.
///
/// Nothing is submitted. Each gang is planned by itself, as if it were submitted next.
#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Manifests; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Answer::Text)]
    output: Answer,
    #[command(flatten)]
    connect: ConnectOptions,
}

const EXAMPLES: &str = "\
Examples:
  muster what-if job.yaml
  sed 's/min: 8/min: 4/' job.yaml | muster what-if -
  muster what-if job.yaml -o json | jq '.[] | {name, starts, cost}'";

pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let api = args.connect.api()?;
    let manifests = manifests::read(&args.files)?;
    let sent = Payload { body: Some((manifests.content, &manifests.text)), ..Payload::default() };
    let answer: Result<Items<WhatIf>, _> = api.post("/v1/what-if", sent).await;
    let Items { items } = answer.map_err(|error| manifests.explain(error))?;
    if args.output == Answer::Json {
        stdout::line(format_args!("{:#}", serde_json::to_value(&items)?));
        return Ok(());
    }
    if items.is_empty() {
        eprintln!("there is no gang in these manifests");
        return Ok(());
    }
    let rows: Vec<_> = items.iter().map(row).collect();
    let titles = ["GANG", "STARTS", "NEW NODES", "HOURLY", "COST"];
    plain(&titles, 3, &rows).iter().for_each(stdout::line);
    let lines = items.iter().flat_map(|item| &item.lines);
    lines.enumerate().for_each(|(at, line)| {
        stdout::line(format_args!("{}{line}", if at == 0 { "\n" } else { "" }));
    });
    Ok(())
}

fn row(item: &WhatIf) -> Vec<String> {
    let WhatIf { name, starts, nodes, hourly, cost, lines: _ } = item;
    let starts = starts.map_or_else(|| "?".to_owned(), |at| age::until(at.0, age::now()));
    let cost = cost.map_or_else(|| "-".to_owned(), |cost| format!("{cost:.2}"));
    vec![name.clone(), starts, nodes.to_string(), format!("{hourly:.2}"), cost]
}
