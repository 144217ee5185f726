//! `cargo xtask faults`: runs many seeds on all cores and stops at the first broken promise.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::bail;
use clap::Args as ClapArgs;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use muster_plan::QueueOrder;
use muster_sim::faults::{Sabotage, Verified, run_seed_under};
use muster_sim::host::Watcher;
use muster_testkit::Promise;

/// Run random worlds of up to 200 nodes: first with faults (safety), then without (liveness).
///
/// Every promise of the design is checked after every event. A broken promise is printed with its seed and
/// the command that replays it.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// How many seeds to run
    #[arg(long, default_value_t = 1_000)]
    seeds: u64,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Replay just this seed
    #[arg(long, conflicts_with_all = ["seeds", "from"])]
    seed: Option<u64>,
    /// Plant a bug that breaks this promise, or one with a name of its own, to prove that it is detected
    #[arg(long, value_name = "PROMISE", value_parser = sabotage)]
    sabotage: Option<Sabotage>,
    /// The queue order; without it every order in turn, by seed
    #[arg(long, value_name = "NAME")]
    policy: Option<QueueOrder>,
    /// Print every fact of the replayed seed
    #[arg(long, requires = "seed")]
    trace: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

fn sabotage(name: &str) -> Result<Sabotage, String> {
    Sabotage::named(name).ok_or_else(|| {
        let promises = Promise::ALL.iter().map(|promise| promise.name());
        let names: Vec<&str> = promises.chain(Sabotage::NAMED.map(|(name, _)| name)).collect();
        format!("no such promise, and no such bug; there are {}", names.join(", "))
    })
}

#[derive(Default)]
struct Totals {
    seeds: u64,
    steps: u64,
    jobs: u64,
    nodes_max: usize,
    rollbacks: u64,
    restarts: u64,
    evictions: u64,
    resizes: u64,
    notices: u64,
    broken: Vec<Verified>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let (from, count) = args.seed.map_or((args.from, args.seeds), |seed| (seed, 1));
    let sabotage = args.sabotage;
    let began = std::time::Instant::now();
    let totals = run_seeds(args.policy, from, count, sabotage, args.trace);
    report(args, from, &totals, began.elapsed().as_secs_f64());
    let found = totals.broken.iter().flat_map(|seed| &seed.violations);
    match sabotage {
        None if totals.broken.is_empty() => Ok(()),
        None => bail!("{} of {} seeds broke a promise", totals.broken.len(), totals.seeds),
        Some(bug) if found.into_iter().any(|broken| broken.promise == bug.promise()) => Ok(()),
        Some(bug) => {
            bail!("the planted bug {} was not caught in {} seeds", bug.name(), totals.seeds)
        }
    }
}

/// Shows every fact on standard error.
fn printer() -> Watcher {
    Box::new(|now, _, fact| eprintln!("{:>12.3} {fact:?}", now.as_secs_f64()))
}

/// The queue order of a seed: the given one, or each in turn. Planted bugs run under strict fifo, where overtaking is one.
fn order_for(policy: Option<QueueOrder>, seed: u64, sabotage: Option<Sabotage>) -> QueueOrder {
    let all = QueueOrder::NAMES;
    let in_turn = all[(seed % all.len() as u64) as usize].1;
    policy.unwrap_or(if sabotage.is_some() { QueueOrder::Fifo } else { in_turn })
}

/// Prints the seed when its run panics.
struct Named(u64);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "seed {} panicked; replay it with: cargo xtask faults --seed {}",
                self.0, self.0
            );
        }
    }
}

fn run_seeds(
    policy: Option<QueueOrder>,
    from: u64,
    count: u64,
    sabotage: Option<Sabotage>,
    trace: bool,
) -> Totals {
    let bar = ProgressBar::new(count);
    if !std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} seeds, {per_sec}, {eta} left");
    bar.set_style(style.expect("a valid template"));
    let next = AtomicU64::new(from);
    let stop = AtomicBool::new(false);
    let totals = Mutex::new(Totals::default());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= from.saturating_add(count) || stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let order = order_for(policy, seed, sabotage);
                    let _named = Named(seed);
                    let verified = run_seed_under(order, seed, sabotage, trace.then(printer));
                    bar.inc(1);
                    let mut totals = totals.lock().expect("no worker panics while it counts");
                    totals.seeds += 1;
                    totals.steps += verified.steps;
                    totals.jobs += verified.jobs as u64;
                    totals.nodes_max = totals.nodes_max.max(verified.nodes);
                    totals.rollbacks += verified.rollbacks;
                    totals.restarts += verified.restarts;
                    totals.evictions += verified.disruptions.evictions();
                    totals.resizes += verified.disruptions.resizes();
                    totals.notices += verified.disruptions.notices;
                    if !verified.violations.is_empty() {
                        totals.broken.push(verified);
                        // One is enough; a planted bug is found when it first shows.
                        stop.store(true, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    bar.finish_and_clear();
    totals.into_inner().expect("all workers are done")
}

fn report(args: &Args, from: u64, totals: &Totals, seconds: f64) {
    if args.json {
        let broken: Vec<_> = totals
            .broken
            .iter()
            .map(|seed| {
                let found: Vec<String> = seed.violations.iter().map(ToString::to_string).collect();
                serde_json::json!({ "seed": seed.seed, "violations": found })
            })
            .collect();
        let line = serde_json::json!({
            "from": from, "seeds": totals.seeds, "events": totals.steps, "gangs": totals.jobs,
            "nodes_max": totals.nodes_max, "rollbacks": totals.rollbacks, "restarts": totals.restarts,
            "evictions": totals.evictions, "resizes": totals.resizes, "notices": totals.notices,
            "broken": broken, "seconds": seconds,
        });
        println!("{line}");
        return;
    }
    println!(
        "seeds {from}..{}: {} events, {} gangs, {} rollbacks, {} restarts, {} evictions, {} resizes, \
         {} notices, up to {} nodes; {:.1} s",
        from + totals.seeds,
        totals.steps,
        totals.jobs,
        totals.rollbacks,
        totals.restarts,
        totals.evictions,
        totals.resizes,
        totals.notices,
        totals.nodes_max,
        seconds,
    );
    for seed in &totals.broken {
        println!("\nseed {}:", seed.seed);
        for violation in seed.violations.iter().take(40) {
            println!("  {violation}");
        }
        let sabotage =
            args.sabotage.map_or(String::new(), |bug| format!(" --sabotage {}", bug.name()));
        let order = order_for(args.policy, seed.seed, args.sabotage);
        let policy = format!(" --policy {}", order.name());
        println!("  replay: cargo xtask faults --seed {}{policy}{sabotage}", seed.seed);
    }
    if totals.broken.is_empty() {
        println!("every promise was kept");
    }
}
