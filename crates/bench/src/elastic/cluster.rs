//! A fixed cluster of 8-GPU nodes, sized by the demand of the jobs; nothing can be bought.

use anyhow::{Context, ensure};
use muster_core::queue::QueueSpec;
use muster_core::time::{Span, Time};
use muster_plan::Policy;
use muster_sim::accounts::Outcome;
use muster_sim::{Job, Setup, Sim, SimOptions};
use muster_testkit::build;

use crate::elastic::jobs::gpus_of;

/// GPUs of a node.
pub(crate) const NODE: u32 = 8;

/// The results of a run.
#[derive(Clone)]
pub(crate) struct Measured {
    /// The outcome of each job, in the order of the trace.
    pub(crate) outcomes: Vec<Outcome>,
    /// The jobs, with their run times at the size of the trace.
    pub(crate) jobs: Vec<Job>,
    /// GPUs in use as a part of all, from the first submission to the last.
    pub(crate) utilisation: f64,
    /// Resizes of running gangs.
    pub(crate) resizes: u64,
    /// Gangs evicted.
    pub(crate) evictions: u64,
}

/// The number of nodes at which the jobs request this part of them between the first submission and the last, and no
/// fewer than the largest job needs.
pub(crate) fn nodes_for_load(jobs: &[Job], load: f64) -> u32 {
    let (first, last) = ends(jobs);
    let area: f64 = jobs.iter().map(|job| f64::from(gpus_of(job)) * job.run.as_secs_f64()).sum();
    let gpus = area / last.since(first).as_secs_f64().max(1.0) / load.max(0.01);
    ((gpus / f64::from(NODE)).ceil() as u32).max(nodes_of_largest(jobs))
}

/// The smallest cluster on which rigid gangs wait no longer than this part of the time they run, on average.
///
/// # Errors
/// When a run fails.
pub(crate) fn nodes_for_wait(jobs: &[Job], rigid: &[Job], part: f64) -> anyhow::Result<u32> {
    let runs: f64 = rigid.iter().map(|job| job.run.as_secs_f64()).sum();
    let is_enough = |nodes| -> anyhow::Result<bool> {
        let waits = run(rigid.to_vec(), nodes, false)?.outcomes;
        let waited: f64 = waits.iter().filter_map(Outcome::wait).map(Span::as_secs_f64).sum();
        Ok(waited <= part * runs)
    };
    // On fewer they would never have waited so little.
    let mut least = nodes_for_load(jobs, 1.0);
    let mut most = least;
    while !is_enough(most)? {
        (least, most) = (most + 1, most * 2);
    }
    while least < most {
        let middle = least.midpoint(most);
        if is_enough(middle)? {
            most = middle;
        } else {
            least = middle + 1;
        }
    }
    Ok(most)
}

fn nodes_of_largest(jobs: &[Job]) -> u32 {
    jobs.iter().map(gpus_of).max().unwrap_or(0).div_ceil(NODE)
}

/// When the first and the last job is submitted.
fn ends(jobs: &[Job]) -> (Time, Time) {
    let submit = |job: Option<&Job>| job.map_or(Time::ZERO, |job| job.submit);
    (submit(jobs.first()), submit(jobs.last()))
}

/// Runs all gangs to their end.
pub(crate) fn run(gangs: Vec<Job>, nodes: u32, check: bool) -> anyhow::Result<Measured> {
    let (first, last) = ends(&gangs);
    let setup = Setup {
        queues: vec![QueueSpec::open("default")],
        nodes: (0..nodes).map(|at| build::node(&format!("node-{at}"), NODE as u16, &[])).collect(),
        jobs: gangs,
        ..Setup::default()
    };
    // Verdicts are not read here; decisions are the same without them.
    let policy = Policy { explain: false, ..Policy::default() };
    let options = SimOptions { check, ..SimOptions::default() };
    let mut sim = Sim::new(setup, policy, options).context("the cluster")?;
    sim.run(last);
    let busy = sim.accounts().meter().work().busy_gpu_ms as f64;
    let had = f64::from(nodes * NODE) * last.since(first).0 as f64;
    sim.run(last + DRAIN_LIMIT);
    ensure!(sim.unfinished() == 0, "{} gangs did not end", sim.unfinished());
    ensure!(sim.violations().is_empty(), "broken: {:?}", sim.violations().first());
    let outcomes = sim.accounts().outcomes().to_vec();
    Ok(Measured {
        resizes: outcomes.iter().map(|outcome| u64::from(outcome.resizes)).sum(),
        evictions: outcomes.iter().map(|outcome| u64::from(outcome.evictions)).sum(),
        outcomes,
        jobs: sim.jobs().to_vec(),
        utilisation: busy / had,
    })
}

/// How long jobs have to end after the last submission; far more than any job takes.
const DRAIN_LIMIT: Span = Span::hours(24 * 365);
