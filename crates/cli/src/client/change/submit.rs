//! `muster submit`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args as ClapArgs;
use hyper::Method;
use muster_core::time::Span;
use muster_server::{Applied, Effect, Kind};
use serde_json::Value;

use crate::client::change::manifests;
use crate::client::connection::address::Query;
use crate::client::connection::api::{Api, Items, Payload};
use crate::client::connection::connect::ConnectOptions;
use crate::client::follow::wait::{Printing, wait_for_gangs};
use crate::client::output::kinds::word;
use crate::client::output::output_prefix::{LogSelection, Prefix};
use crate::client::output::printer::Answer;
use crate::exit::{Unsuccessful, WaitTimeout};
use crate::figures::count;
use crate::stdout;

/// Submit gangs and all other objects of the manifests: all of them or none.
///
/// Objects that exist are updated. With --wait the command ends when every gang is over: with 0 if all succeeded, with
/// 3 if one did not, with 4 if --timeout has passed. Gangs go on whenever the command ends.
///
/// A request without an answer is sent again with the same idempotency key, and applied once.
#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Manifests; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Wait until all of the gangs are over
    #[arg(short, long)]
    wait: bool,
    /// Wait, and print the output of the members
    #[arg(short, long)]
    follow: bool,
    /// Wait no longer than this, such as 30m
    #[arg(long, value_name = "SPAN")]
    timeout: Option<Span>,
    /// Only say what would change
    #[arg(long, conflicts_with_all = ["wait", "follow", "timeout"])]
    dry_run: bool,
    /// The idempotency key: the same key with the same manifests is applied once; random when absent
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Answer::Text)]
    output: Answer,
    #[command(flatten)]
    connect: ConnectOptions,
}

const EXAMPLES: &str = "\
Examples:
  muster submit job.yaml
  muster submit queues.yaml pools.yaml jobs/*.yaml
  muster submit --follow job.yaml                       and print what its members print
  muster submit --wait --timeout 2h job.yaml && ./next  for scripts
  generate | muster submit --dry-run -

Exit codes: 0 done; 1 failed while running; 2 the input or the command line is wrong; 3 a gang did not succeed;
4 time is up.";

pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let api = Arc::new(args.connect.api()?);
    let applied = apply(&api, args).await?;
    let waits = args.wait || args.follow || args.timeout.is_some();
    let gangs = applied.iter().filter(|one| one.kind == Kind::Gang);
    let gangs: Vec<String> = gangs.map(|one| one.name.to_string()).collect();
    match args.output {
        Answer::Text => applied.iter().for_each(|one| tell(one, args.dry_run)),
        Answer::Json => stdout::line(format_args!("{:#}", serde_json::to_value(&applied)?)),
    }
    if waits && !gangs.is_empty() {
        return wait(&api, &gangs, args).await;
    }
    Ok(())
}

async fn apply(api: &Api, args: &Args) -> anyhow::Result<Vec<Applied>> {
    let manifests = manifests::read(&args.files)?;
    let body = Some((manifests.content, &*manifests.text));
    let query = Query::default().maybe("dryRun", args.dry_run.then_some(true));
    let sent = Payload { body, key: args.idempotency_key.as_deref() };
    let answer = api.change(Method::POST, &query.on("/v1/apply"), sent).await;
    let answer: Value = answer.map_err(|error| manifests.explain(error))?.unwrap_or_default();
    let applied: Items<Applied> = serde_json::from_value(answer)?;
    Ok(applied.items)
}

fn tell(one: &Applied, dry_run: bool) {
    let effect = match (one.effect, dry_run) {
        (Effect::Created, false) => "is new",
        (Effect::Replaced, false) => "is new, in the place of one that is over",
        (Effect::Replaced, true) => "would be new, in the place of one that is over",
        (Effect::Changed, false) => "has changed",
        (Effect::Unchanged, _) => "is as it was",
        (Effect::Created, true) => "would be new",
        (Effect::Changed, true) => "would change",
    };
    stdout::line(format_args!("{} {} {effect}", word(one.kind), one.name));
    one.warnings.iter().for_each(|warning| eprintln!("warning: {}: {warning}", one.name));
}

async fn wait(api: &Arc<Api>, gangs: &[String], args: &Args) -> anyhow::Result<()> {
    let prefix = Prefix { gang: gangs.len() > 1, member: true };
    let which = LogSelection { follow: true, ..LogSelection::default() };
    let logs = args.follow.then_some((which, prefix));
    let printing = Printing { phases: true, logs };
    let over = wait_for_gangs(api, gangs, &printing);
    let standings = match args.timeout {
        None => over.await?,
        Some(span) => match tokio::time::timeout(Duration::from_millis(span.0), over).await {
            Ok(standings) => standings?,
            Err(_) => {
                let why = format!("not all gangs were over after {span}; they go on");
                return Err(WaitTimeout(why).into());
            }
        },
    };
    let bad = standings.values().filter(|standing| standing.over != Some(true)).count();
    match bad {
        0 => Ok(()),
        _ => {
            let all = count(gangs.len(), "gang");
            Err(Unsuccessful(format!("{bad} of {all} did not succeed")).into())
        }
    }
}
