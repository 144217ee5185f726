//! `muster rehearse`.

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

use crate::exit::Misused;
use crate::figures::{count, span};
use crate::simulation::setup;
use crate::simulation::start_time::Begin;
use crate::simulation::unfinished::undone;
use crate::stdout;
use crate::timeline::{Comparison, REDRAW, Timeline, compare};

/// Play gangs on simulated nodes with simulated workers, and tell the story as it happens.
///
/// Nothing is started: `muster run` does that. Pools boot simulated nodes with the boot times and failures their manifests give; workers are simulated
/// and take the time the annotation `sim.muster.sh/run-time` says. At the end the same workload is run once more
/// without gangs, one node and one start at a time, and both are shown side by side.
#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Manifests with gangs, queues, pools and nodes
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Simulated seconds per second of wall time
    #[arg(long, default_value_t = 30.0, value_parser = speed, allow_negative_numbers = true)]
    speed: f64,
    #[command(flatten)]
    begin: Begin,
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

const EXAMPLES: &str = "\
Examples:
  muster rehearse examples/quickstart.yaml                    the story in a minute
  muster rehearse --speed 100000 examples/quickstart.yaml     the same at once
  muster rehearse --speed 100000 --json job.yaml pools.yaml | jq .summary";

pub(crate) fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if speed > 0.0 && speed.is_finite() => Ok(speed),
        _ => Err("a number above zero is needed, such as 30".to_owned()),
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let setup = setup::setup(setup::manifests(&args.files)?, &args.begin);
    if setup.jobs.is_empty() {
        return Err(Misused("nothing to run: there is no gang in these manifests".into()).into());
    }
    let policy = Policy::default();
    let options = SimOptions { seed: args.seed, check: true, ..SimOptions::default() };
    let names = setup.jobs.iter().map(|job| job.gang.name.chars().count());
    let timeline = Rc::new(RefCell::new(Timeline::new(names)));
    let mut sim = Sim::new(setup.clone(), policy.clone(), options)?;
    if args.json {
        sim.watch(Box::new(|now, _, fact| {
            stdout::line(serde_json::json!({ "at_s": now.as_secs_f64(), "fact": fact }));
        }));
    } else {
        let timeline = timeline.clone();
        sim.watch(Box::new(move |now, world, fact| timeline.borrow_mut().tell(now, world, fact)));
    }
    let interrupted = interrupts()?;
    let interrupted_at = pace(&mut sim, args.speed, &interrupted, |sim, moment| match moment {
        _ if args.json => {}
        Moment::Step => timeline.borrow_mut().stands(sim.now(), sim.world(), sim.last_plan()),
        Moment::Between(now) => timeline.borrow_mut().draw(now, sim.world(), sim.last_plan()),
    });
    timeline.borrow_mut().finish();
    if let Some(now) = interrupted_at {
        let (left, now) = (undone(&sim), span(now.since(Time::ZERO)));
        let number = count(left.len(), "gang");
        bail!("interrupted after {now} of simulated time, {number} not done:{}", listed(&left));
    }
    sim.close();
    let summary = Summary::of(&sim, policy.order.name(), true);
    let comparison = if args.no_compare { None } else { Some(compare(setup, &sim, args.seed)?) };
    report(args, &sim, &summary, comparison.as_ref());
    judge(&sim)
}

/// When somebody may want to look.
enum Moment {
    /// A step was taken.
    Step,
    /// Time passes until the next one.
    Between(Time),
}

/// Steps through the simulation at the given speed. When somebody interrupts, the time that was reached.
fn pace(
    sim: &mut Sim,
    speed: f64,
    interrupted: &Receiver<()>,
    mut look: impl FnMut(&Sim, Moment),
) -> Option<Time> {
    let began = Instant::now();
    while let Some(at) = sim.next_at().filter(|_| !sim.is_over()) {
        loop {
            let now = Time::from_secs_f64(began.elapsed().as_secs_f64() * speed).min(at);
            let now = now.max(sim.now());
            look(sim, Moment::Between(now));
            let left = at.since(now).as_secs_f64() / speed;
            let left = Duration::try_from_secs_f64(left).unwrap_or(REDRAW);
            match interrupted.recv_timeout(left.min(REDRAW)) {
                Ok(()) => return Some(now),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            if now == at {
                break;
            }
        }
        sim.step();
        look(sim, Moment::Step);
    }
    None
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
        stdout::line(serde_json::json!({ "summary": summary, "comparison": comparison }));
        return;
    }
    if let Some(comparison) = comparison {
        stdout::line(format_args!("\n{comparison}"));
    }
    let steps = count(sim.steps() as usize, "step");
    let broken = sim.violations().len();
    stdout::line(format_args!("  promises checked after each of {steps}: {broken} broken"));
}

/// Fails when a promise was broken or a gang was left behind.
fn judge(sim: &Sim) -> anyhow::Result<()> {
    if let Some(violation) = sim.violations().first() {
        bail!("a promise was broken: {violation}");
    }
    let left = undone(sim);
    if left.is_empty() {
        return Ok(());
    }
    bail!("nothing is left to happen, and {} not done:{}", count(left.len(), "gang"), listed(&left))
}

/// One line each, below the sentence they belong to.
fn listed(lines: &[String]) -> String {
    lines.iter().map(|line| format!("\n  {line}")).collect()
}
