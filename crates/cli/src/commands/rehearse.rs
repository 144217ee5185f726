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

use crate::exit::UsageError;
use crate::figures::{count, span};
use crate::simulation::setup;
use crate::simulation::start_time::StartTime;
use crate::simulation::unfinished::unfinished;
use crate::stdout;
use crate::timeline::{Comparison, REDRAW, Timeline, compare};

/// Simulate gangs, nodes and workers in slowed-down virtual time, and print a timeline as it happens.
///
/// No process is started: `muster run` does that. Pools boot simulated nodes with the boot times and failures in their
/// manifests; simulated workers run for the time in the annotation `sim.muster.sh/run-time`. At the end the same
/// workload is simulated once more without gangs, one node and one start at a time, and both runs are compared.
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
    begin: StartTime,
    /// The random seed; the same seed gives the same timeline
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Do not compare with a run without gangs
    #[arg(long)]
    no_compare: bool,
    /// Print every fact as one JSON object per line, and the result as the last line
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  muster rehearse examples/quickstart.yaml                    the timeline in a minute
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
        return Err(UsageError("nothing to run: there is no gang in these manifests".into()).into());
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
        sim.watch(Box::new(move |now, world, fact| {
            timeline.borrow_mut().on_fact(now, world, fact);
        }));
    }
    let interrupted = interrupts()?;
    let interrupted_at =
        run_at_speed(&mut sim, args.speed, &interrupted, |sim, moment| match moment {
            _ if args.json => {}
            Moment::Step => timeline.borrow_mut().on_plan(sim.now(), sim.world(), sim.last_plan()),
            Moment::Between(now) => timeline.borrow_mut().draw(now, sim.world(), sim.last_plan()),
        });
    timeline.borrow_mut().finish();
    if let Some(now) = interrupted_at {
        let (left, now) = (unfinished(&sim), span(now.since(Time::ZERO)));
        let number = count(left.len(), "gang");
        bail!("interrupted after {now} of simulated time, {number} unfinished:{}", listed(&left));
    }
    sim.close();
    let summary = Summary::of(&sim, policy.order.name(), true);
    let comparison = if args.no_compare { None } else { Some(compare(setup, &sim, args.seed)?) };
    report(args, &sim, &summary, comparison.as_ref());
    check_outcome(&sim)
}

/// A point in time at which the timeline is drawn.
enum Moment {
    /// After a step.
    Step,
    /// Between two steps.
    Between(Time),
}

/// Steps through the simulation at the given speed. When interrupted, returns the simulated time that was reached.
fn run_at_speed(
    sim: &mut Sim,
    speed: f64,
    interrupted: &Receiver<()>,
    mut draw: impl FnMut(&Sim, Moment),
) -> Option<Time> {
    let began = Instant::now();
    while let Some(at) = sim.next_at().filter(|_| !sim.is_over()) {
        loop {
            let now = Time::from_secs_f64(began.elapsed().as_secs_f64() * speed).min(at);
            let now = now.max(sim.now());
            draw(sim, Moment::Between(now));
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
        draw(sim, Moment::Step);
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

/// Fails when a promise was broken or a gang is unfinished.
fn check_outcome(sim: &Sim) -> anyhow::Result<()> {
    if let Some(violation) = sim.violations().first() {
        bail!("a promise was broken: {violation}");
    }
    let left = unfinished(sim);
    if left.is_empty() {
        return Ok(());
    }
    bail!("the simulation is over with {} unfinished:{}", count(left.len(), "gang"), listed(&left))
}

/// One indented line each.
fn listed(lines: &[String]) -> String {
    lines.iter().map(|line| format!("\n  {line}")).collect()
}
