//! `muster run`.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args as ClapArgs;
use comfy_table::{CellAlignment, Table, presets};
use muster_core::time::{Span, Time};
use muster_core::{Fact, Plan, World};
use muster_local::{Keep, Local, Options, Watch, Watcher, this_machine};
use muster_plan::Policy;
use muster_server::{Caller, Change, GangName, Host, Kind, Refused};
use muster_testkit::Ledger;
use muster_testkit::promises::{Promise, excused};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::commands::rehearse;
use crate::exit::{BadInput, UsageError};
use crate::figures::{count, span};
use crate::signals::Signals;
use crate::stdout;
use crate::timeline::Timeline;
use crate::worker_output::stream_output;

/// Run gangs as real processes, on simulated nodes or on this machine, and print a timeline as it happens.
///
/// A control plane is started for these manifests alone. Pools boot simulated nodes with the boot times and failures in
/// their manifests, faster by `--speed`; when all nodes of a gang are ready, all of its workers are started together,
/// as processes on this machine, with RANK, WORLD_SIZE and the like in their environment. Without pools and nodes,
/// gangs run on this machine's own CPUs, memory and GPUs. Members of roles without a command sleep for the time in the
/// annotation `sim.muster.sh/run-time`. The output of workers is printed at the end when they fail.
#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Manifests: gangs, queues, pools and nodes, or a Job, PyTorchJob, MPIJob, JobSet, ...
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Simulated seconds per second of wall time; 1 on this machine's own nodes
    #[arg(long, value_parser = rehearse::speed, allow_negative_numbers = true)]
    speed: Option<f64>,
    /// The random seed of simulated clouds
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run on this machine as well, in addition to the nodes of the manifests
    #[arg(long)]
    local: bool,
    /// Store the database and the output of workers in this directory
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Print the output of workers as it happens
    #[arg(long, short)]
    logs: bool,
    /// Print every fact as one JSON object per line, and the result as the last line
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  muster run examples/quickstart.yaml            a ring all-reduce of eight processes, on eight simulated nodes
  muster run --logs examples/quickstart.yaml     the same, with the output of its workers
  muster run job.yaml                            a Job on this machine's own CPUs and GPUs";

/// How long all unfinished gangs must have been infeasible until the run ends.
const INFEASIBLE_TIMEOUT: Duration = Duration::from_secs(2);
/// The timeout for the last output of workers.
const OUTPUT_DRAIN: Duration = Duration::from_secs(2);

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    muster_local::keep_private();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let data = match &args.data {
        Some(data) => data.clone(),
        None => own_directory()?,
    };
    let ended = runtime.block_on(run_gangs(args, data.clone()));
    if args.data.is_none() {
        let _ = std::fs::remove_dir_all(&data);
    }
    ended
}

/// A new directory with an unpredictable name.
fn own_directory() -> anyhow::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt;
    let mut random = [0u8; 16];
    let source = ring::rand::SystemRandom::new();
    ring::rand::SecureRandom::fill(&source, &mut random)
        .map_err(|_| anyhow::anyhow!("no random numbers"))?;
    let name = format!("muster-run-{:032x}", u128::from_le_bytes(random));
    let path = std::env::temp_dir().join(name);
    std::fs::DirBuilder::new().mode(0o700).create(&path)?;
    Ok(path)
}

async fn run_gangs(args: &Args, data: PathBuf) -> anyhow::Result<()> {
    let mut signals = Signals::listen()?;
    let intake = muster_local::read_files(&args.files).map_err(BadInput)?;
    if intake.gangs().next().is_none() {
        return Err(UsageError("nothing to run: there is no gang in these manifests".into()).into());
    }
    let own = args.local || !intake.has_nodes();
    let default = if intake.has_pools() { 30.0 } else { 1.0 };
    let options = Options {
        data,
        speed: args.speed.unwrap_or(default),
        seed: args.seed,
        node: own.then(this_machine),
        keep: Keep::default(),
        policy: Policy::default(),
        // The workers belong to this user and are started from this user's own shell.
        pass_env: std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect(),
        may_run_as_root: true,
    };
    let gangs: Vec<String> = intake.gangs().map(str::to_owned).collect();
    let progress = Arc::new(Mutex::new(Progress::new(args.json, &gangs, options.speed)));
    let promises = Arc::new(Mutex::new(Ledger::new(intake.terms(&Policy::default()))));
    let watchers: Vec<Watcher> =
        vec![Box::new(ProgressWatcher(progress.clone())), Box::new(PromiseCheck(promises.clone()))];
    let local = Local::start(&options, watchers, tokio::runtime::Handle::current())?;
    let local = Arc::new(local);
    let me = Caller::admin(&user());
    let reader = local.board().follow(None);
    let applied = local.take(me.clone(), intake, false).await.map_err(refused)?;
    for warning in applied.iter().flat_map(|one| &one.warnings) {
        eprintln!("warning: {warning}");
    }
    let mut streams = JoinSet::new();
    for name in gangs.iter().filter(|_| args.logs && !args.json) {
        let progress = progress.clone();
        let print_output = move |line: &str| {
            if let Ok(progress) = progress.lock() {
                progress.print_output(line);
            }
        };
        streams.spawn(stream_output(local.clone(), name.clone(), print_output));
    }
    let interrupted = follow(&local, reader, &gangs, &me, &mut signals).await;
    // The last output is printed before the results; gangs that never end print no more.
    let _ =
        tokio::time::timeout(OUTPUT_DRAIN, async { while streams.join_next().await.is_some() {} })
            .await;
    streams.abort_all();
    if let Ok(mut progress) = progress.lock() {
        progress.finish();
    }
    local.quit().await;
    local.join()?;
    report(args, &local, &gangs).await?;
    check_promises(args, &promises)?;
    if interrupted {
        bail!("interrupted: every gang was stopped");
    }
    check_outcome(&local, &gangs).await
}

/// Follows gangs until all of them are over. A signal cancels them; returns whether one arrived.
async fn follow(
    local: &Local,
    mut reader: muster_server::Reader,
    gangs: &[String],
    me: &Caller,
    signals: &mut Signals,
) -> bool {
    let mut interrupted = false;
    let mut infeasible_since: Option<Instant> = None;
    let board = local.board().clone();
    while !gangs.iter().all(|name| is_over(board.get(Kind::Gang, name).as_deref())) {
        let is_infeasible = |name: &String| {
            let gang = board.get(Kind::Gang, name);
            is_over(gang.as_deref()) || phase(gang.as_deref()) == Some("Infeasible")
        };
        match gangs.iter().all(is_infeasible) {
            false => infeasible_since = None,
            true if infeasible_since.get_or_insert_with(Instant::now).elapsed()
                > INFEASIBLE_TIMEOUT =>
            {
                return interrupted;
            }
            true => {}
        }
        if !local.is_alive() {
            return interrupted;
        }
        tokio::select! {
            found = reader.next(1_000) => {
                if found.is_none() {
                    return interrupted;
                }
            }
            () = signals.next() => {
                interrupted = true;
                for name in gangs {
                    let Some((namespace, name)) = name.split_once('/') else { continue };
                    let gang = GangName { namespace: namespace.to_owned(), name: name.to_owned() };
                    let _ = local.change(me.clone(), gang, Change::Cancel).await;
                }
            }
            () = tokio::time::sleep(Duration::from_millis(500)) => {}
        }
    }
    interrupted
}

pub(crate) fn is_over(gang: Option<&Value>) -> bool {
    matches!(phase(gang), Some("Succeeded" | "Failed")) || gang.is_none()
}

fn phase(gang: Option<&Value>) -> Option<&str> {
    gang?.pointer("/status/phase")?.as_str()
}

pub(crate) fn refused(refused: Refused) -> anyhow::Error {
    match refused {
        Refused::Findings(findings) => BadInput(findings).into(),
        other => UsageError(other.to_string()).into(),
    }
}

fn user() -> String {
    std::env::var("USER").unwrap_or_else(|_| "me".to_owned())
}

/// Prints a table of the gangs and their results.
async fn report(args: &Args, local: &Local, gangs: &[String]) -> anyhow::Result<()> {
    let all: Vec<(&String, Arc<Value>)> = gangs
        .iter()
        .filter_map(|name| Some((name, local.board().get(Kind::Gang, name)?)))
        .collect();
    if args.json {
        let objects: Vec<&Value> = all.iter().map(|(_, object)| &**object).collect();
        stdout::line(serde_json::json!({ "gangs": objects }));
        return Ok(());
    }
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(["gang", "members", "start spread", "ran", "ended"]);
    for (name, object) in &all {
        let status = &object["status"];
        let text = |field: &str| status[field].as_str().unwrap_or("");
        let members = status["members"]["total"].as_i64().unwrap_or(0);
        let spread = status["startSpreadMicros"].as_u64();
        let spread = spread.map_or("-".to_owned(), |us| format!("{:.1} ms", us as f64 / 1e3));
        table.add_row([
            (*name).clone(),
            members.to_string(),
            spread,
            ran(text("runningSince"), text("endedAt")),
            format!("{}: {}", text("reason"), text("message")),
        ]);
    }
    for column in table.column_iter_mut().skip(1).take(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    stdout::line(format_args!("\n{table}"));
    for (name, object) in &all {
        if object["status"]["phase"] != "Succeeded" && !args.logs {
            show_logs(local, name).await;
        }
    }
    Ok(())
}

fn ran(from: &str, to: &str) -> String {
    let instant = |text: &str| muster_api::instant(text).ok();
    match (instant(from), instant(to)) {
        (Some(from), Some(to)) => span(Span(to.since(from).0)),
        _ => "-".to_owned(),
    }
}

/// Prints the last output of a gang's members.
async fn show_logs(local: &Local, name: &str) {
    const LINES: usize = 20;
    let Some((namespace, short)) = name.split_once('/') else { return };
    let gang = GangName { namespace: namespace.to_owned(), name: short.to_owned() };
    let which = muster_server::WhichLogs { tail: Some(LINES), ..Default::default() };
    let Ok(mut logs) = local.logs(gang, which).await else { return };
    let mut first = true;
    while let Some(part) = logs.recv().await {
        if std::mem::take(&mut first) {
            stdout::line(format_args!("\nthe last output of {name}:"));
        }
        for line in part.text.lines() {
            stdout::line(format_args!("  [{} {}] {line}", part.role, part.member));
        }
    }
}

async fn check_outcome(local: &Local, gangs: &[String]) -> anyhow::Result<()> {
    let failed: Vec<&String> = gangs
        .iter()
        .filter(|name| {
            let object = local.board().get(Kind::Gang, name);
            object.is_none_or(|object| object["status"]["phase"] != "Succeeded")
        })
        .collect();
    if failed.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = failed.iter().map(|name| name.as_str()).collect();
    Err(anyhow::anyhow!("{} unfinished: {}", count(failed.len(), "gang"), names.join(", ")))
        .context("not every gang succeeded")
}

/// Fails when a promise was broken.
fn check_promises(args: &Args, promises: &Mutex<Ledger>) -> anyhow::Result<()> {
    let Ok(ledger) = promises.lock() else { return Ok(()) };
    // A busy machine may run a cycle a moment late, which is minutes where time goes faster: the deadline for releasing
    // idle nodes is not checked here.
    let mut broken = ledger.violations().iter().filter(|one| one.promise != Promise::NoLeak);
    if let Some(violation) = broken.next() {
        bail!("a promise was broken: {violation}");
    }
    if !args.json {
        stdout::line("\n  promises checked at every event: 0 broken");
    }
    Ok(())
}

/// Checks every fact and every plan against Muster's promises.
struct PromiseCheck(Arc<Mutex<Ledger>>);

impl Watch for PromiseCheck {
    fn fact(&mut self, now: Time, _: &World, fact: &Fact) {
        if let Ok(mut ledger) = self.0.lock() {
            ledger.note(now, fact);
        }
    }

    fn stands(&mut self, now: Time, _: &World, plan: &Plan) {
        if let Ok(mut ledger) = self.0.lock() {
            ledger.promised(now, &plan.reservations);
            ledger.targets(now, &plan.targets);
            ledger.excuse(excused(plan));
            ledger.check(now);
        }
    }
}

/// The output of a run: a timeline, or JSON.
struct Progress {
    json: bool,
    timeline: Option<Timeline>,
    widths: Vec<usize>,
    speed: f64,
}

impl Progress {
    fn new(json: bool, gangs: &[String], speed: f64) -> Self {
        let widths = gangs.iter().map(|name| name.chars().count()).collect();
        Self { json, timeline: None, widths, speed }
    }

    /// The timeline, which begins with the first fact.
    fn timeline(&mut self, now: Time) -> &mut Timeline {
        let (widths, speed) = (&self.widths, self.speed);
        self.timeline
            .get_or_insert_with(|| Timeline::new(widths.iter().copied()).of_processes(now, speed))
    }

    /// Prints a line of a worker's output.
    fn print_output(&self, line: &str) {
        match &self.timeline {
            Some(timeline) => timeline.print_output(line),
            None => stdout::line(line),
        }
    }

    fn finish(&mut self) {
        if let Some(timeline) = &mut self.timeline {
            timeline.finish();
        }
    }
}

/// Feeds the facts and plans of the control plane to the output.
struct ProgressWatcher(Arc<Mutex<Progress>>);

impl Watch for ProgressWatcher {
    fn fact(&mut self, now: Time, world: &World, fact: &Fact) {
        let Ok(mut progress) = self.0.lock() else { return };
        if progress.json {
            stdout::line(serde_json::json!({ "at_s": now.as_secs_f64(), "fact": fact }));
        } else {
            progress.timeline(now).on_fact(now, world, fact);
        }
    }

    fn stands(&mut self, now: Time, world: &World, plan: &Plan) {
        let Ok(mut progress) = self.0.lock() else { return };
        if !progress.json {
            progress.timeline(now).on_plan(now, world, plan);
        }
    }
}
