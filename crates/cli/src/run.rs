//! `muster run`.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Args as ClapArgs;
use muster_core::time::Time;
use muster_plan::Policy;
use muster_sim::{Sim, SimOptions, Summary};

use crate::story::{Comparison, Timeline, compare};
use crate::{load, words};

/// Run gangs on simulated nodes in wall-clock time and tell the story as it happens.
///
/// Pools boot simulated nodes with the boot times and failures their manifests give; workers are simulated
/// and take the time `sim.muster.sh/run-time` says. At the end the same workload is run once more without
/// gangs, one node and one start at a time, and both are shown side by side.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Manifests with gangs, queues, pools and nodes
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Simulated seconds per second of wall time
    #[arg(long, default_value_t = 30.0, value_parser = speed)]
    speed: f64,
    /// Where randomness starts; the same seed tells the same story
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Do not run the workload again without gangs
    #[arg(long)]
    no_compare: bool,
    /// Print every fact as one JSON object per line, and the result as the last line
    #[arg(long)]
    json: bool,
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if speed > 0.0 && speed.is_finite() => Ok(speed),
        _ => Err("a number above zero is needed, such as 30".to_owned()),
    }
}

/// Gangs that cannot run would keep the command waiting for ever.
const NOTHING_LEFT: &str = "nothing is left to happen";

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let setup = load::setup(load::manifests(&args.files)?);
    let policy = Policy::default();
    let options = SimOptions { seed: args.seed, check: true, ..SimOptions::default() };
    let names = setup.jobs.iter().map(|job| job.gang.name.chars().count());
    let timeline = Rc::new(RefCell::new(Timeline::new(names)));
    let mut sim = Sim::new(setup.clone(), policy.clone(), options)?;
    if args.json {
        sim.watch(Box::new(|now, _, fact| {
            println!("{}", serde_json::json!({ "at_s": now.as_secs_f64(), "fact": fact }));
        }));
    } else {
        let timeline = timeline.clone();
        sim.watch(Box::new(move |now, world, fact| timeline.borrow_mut().tell(now, world, fact)));
    }
    let interrupted = interrupts()?;
    let finished = pace(&mut sim, args.speed, &interrupted, |sim| {
        if !args.json {
            timeline.borrow_mut().stands(sim.now(), sim.world(), sim.last_plan());
        }
    });
    timeline.borrow_mut().finish();
    if !finished {
        bail!(
            "interrupted at {:.0} simulated seconds; {} gangs were not done",
            sim.now().as_secs_f64(),
            sim.unfinished()
        );
    }
    let summary = Summary::of(&sim, policy.order.name(), true);
    let comparison = if args.no_compare { None } else { Some(compare(setup, &sim, args.seed)?) };
    report(args, &sim, &summary, comparison.as_ref());
    judge(&sim)
}

/// Steps through the simulation at the given speed. `false` when somebody interrupts.
fn pace(
    sim: &mut Sim,
    speed: f64,
    interrupted: &Receiver<()>,
    mut stepped: impl FnMut(&Sim),
) -> bool {
    let began = Instant::now();
    while let Some(at) = sim.next_at() {
        if sim.is_over() {
            break;
        }
        let due = Duration::from_secs_f64(at.since(Time::ZERO).as_secs_f64() / speed);
        let left = due.saturating_sub(began.elapsed());
        match interrupted.recv_timeout(left) {
            Ok(()) => return false,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        sim.step();
        stepped(sim);
    }
    true
}

fn interrupts() -> anyhow::Result<Receiver<()>> {
    let (send, receive) = channel();
    ctrlc::set_handler(move || {
        let _ = send.send(());
    })?;
    Ok(receive)
}

fn report(args: &Args, sim: &Sim, summary: &Summary, comparison: Option<&Comparison>) {
    if args.json {
        println!("{}", serde_json::json!({ "summary": summary, "comparison": comparison }));
        return;
    }
    println!();
    if let Some(comparison) = comparison {
        println!("{comparison}");
        println!(
            "  one by one: the same workload without gangs. Each member asks for its own node and starts when"
        );
        println!(
            "  that node is there; GPUs of early members are wasted until the last one has come."
        );
    }
    println!();
    println!(
        "  promises checked after every one of {} steps: {} broken",
        sim.steps(),
        sim.violations().len()
    );
}

/// Fails when a promise was broken or a gang was left behind.
fn judge(sim: &Sim) -> anyhow::Result<()> {
    if let Some(violation) = sim.violations().first() {
        bail!("a promise was broken: {violation}");
    }
    let left: Vec<String> = sim
        .last_plan()
        .verdicts
        .iter()
        .filter_map(|(id, verdict)| {
            let gang = sim.world().gang(*id)?;
            Some(format!("{}: {}", gang.spec.name, words::verdict(sim.world(), *id, verdict)))
        })
        .collect();
    if left.is_empty() {
        Ok(())
    } else {
        bail!("{NOTHING_LEFT}, but not every gang ran:\n  {}", left.join("\n  "))
    }
}
