//! `cargo xtask bench replay`: the speed of replaying a log, and how it scales with its length and its backlog.

use std::collections::BTreeMap;
use std::time::Instant;

use clap::Args as ClapArgs;
use muster_core::constraint::Labels;
use muster_core::gang::{GangSpec, Provisioning, ProvisioningMode, Request, RoleSpec};
use muster_core::node::NodeSpec;
use muster_core::queue::QueueSpec;
use muster_core::resource::CPU;
use muster_core::time::{Span, Time};
use muster_plan::{Policy, QueueOrder};
use muster_sim::accounts::Outcome;
use muster_sim::{Job, Setup, Sim, SimOptions};
use serde::Serialize;

/// Replay a synthetic log of a large machine, with every promise checked.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// Jobs in the longest log
    #[arg(long, default_value_t = 295_540)]
    jobs: u64,
    /// Processors of the machine
    #[arg(long, default_value_t = 80_640)]
    procs: u64,
    /// Load: the demand of the jobs as a part of the capacity of the machine
    #[arg(long, default_value_t = 0.75)]
    load: f64,
    /// How the queue is ordered
    #[arg(long, value_name = "NAME", default_value = "easy")]
    policy: QueueOrder,
    /// Print one JSON object per log
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Line {
    policy: &'static str,
    procs: u64,
    load: f64,
    jobs: u64,
    /// Submissions, starts and ends.
    events: u64,
    seconds: f64,
    events_per_second: f64,
    mean_wait_s: f64,
    violations: usize,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    for part in [4, 2, 1] {
        let line = replay(args, (args.jobs / part).max(1))?;
        if args.json {
            println!("{}", serde_json::to_string(&line)?);
        } else {
            println!(
                "{}: {} jobs, {} events in {:.1} s, {:.0} events per second, mean wait {:.0} s",
                line.policy,
                line.jobs,
                line.events,
                line.seconds,
                line.events_per_second,
                line.mean_wait_s
            );
        }
    }
    Ok(())
}

fn replay(args: &Args, jobs: u64) -> anyhow::Result<Line> {
    let setup = Setup {
        queues: vec![QueueSpec::open("default")],
        nodes: vec![machine(args.procs)],
        jobs: log(jobs, args.procs, args.load),
        ..Setup::default()
    };
    let policy = Policy { order: args.policy, explain: false, ..Policy::default() };
    let options = SimOptions { check: true, ..SimOptions::default() };
    let mut sim = Sim::new(setup, policy, options)?;
    let began = Instant::now();
    sim.run(Time::MAX);
    let seconds = began.elapsed().as_secs_f64();
    let waits = sim.accounts().outcomes().iter().filter_map(Outcome::wait);
    let waited: f64 = waits.map(Span::as_secs_f64).sum();
    let events = jobs * 3;
    Ok(Line {
        policy: args.policy.name(),
        procs: args.procs,
        load: args.load,
        jobs,
        events,
        seconds,
        events_per_second: events as f64 / seconds,
        mean_wait_s: waited / jobs as f64,
        violations: sim.violations().len(),
    })
}

fn machine(procs: u64) -> NodeSpec {
    NodeSpec {
        name: "machine".into(),
        labels: Labels::new(),
        taints: Vec::new(),
        allocatable: BTreeMap::from([(CPU.into(), procs * 1_000)]),
        gpu: None,
        gpus: 0,
        ready: true,
        claim: None,
        others: false,
    }
}

/// Jobs of 1 to 8,192 processors and seconds to a day, requested in round figures, arriving in waves.
fn log(jobs: u64, procs: u64, load: f64) -> Vec<Job> {
    let mut seed = 1;
    let shapes: Vec<(u64, u64)> = (0..jobs)
        .map(|_| {
            let size = (2_f64.powf(13.0 * (draw(&mut seed) + draw(&mut seed)) / 2.0)) as u64;
            let run = (2_f64.powf(16.4 * (draw(&mut seed) + draw(&mut seed)) / 2.0)) as u64;
            (size.clamp(1, procs / 2), run.max(1))
        })
        .collect();
    let area: u64 = shapes.iter().map(|(size, run)| size * run).sum();
    let span = area as f64 / (procs as f64 * load);
    let mut at = 0.0;
    let mut list = Vec::with_capacity(shapes.len());
    for (i, (size, run)) in shapes.into_iter().enumerate() {
        let wave = 1.0 + 0.8 * (i as f64 / 2_000.0).sin();
        at += span / jobs as f64 * wave * 2.0 * draw(&mut seed);
        let said = [600, 1_800, 3_600, 14_400, 43_200, 86_400].into_iter().find(|s| *s >= run * 2);
        let said = said.unwrap_or(86_400).max(run);
        let submit = Time::ZERO + Span::secs(at as u64);
        list.push(Job::new(gang(i, size, said), submit, Span::secs(run)));
    }
    list
}

fn gang(i: usize, size: u64, said: u64) -> GangSpec {
    let role = RoleSpec {
        name: "proc".into(),
        min: size as u32,
        max: size as u32,
        request: Request { amounts: BTreeMap::from([(CPU.into(), 1_000)]), gpu: None },
        constraints: Default::default(),
        spread: Vec::new(),
    };
    let mode = ProvisioningMode::Never;
    GangSpec {
        name: format!("job-{i}").into(),
        queue: "default".into(),
        user: format!("user-{}", i % 211).into(),
        priority: 0,
        priority_is_declared: false,
        roles: vec![role],
        closeness: None,
        provisioning: Provisioning { mode, ..Provisioning::default() },
        expected_duration: Some(Span::secs(said)),
        deadline: None,
        cost_of_waiting: None,
        disruption: muster_core::gang::Disruption::default(),
        scaling: Default::default(),
    }
}

/// A number from 0 to 1, the same ones on every machine.
fn draw(seed: &mut u64) -> f64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 11) as f64 / (1_u64 << 53) as f64
}
