//! `cargo xtask bench hits`: idle nodes against gangs that start at once, for warm pools.
//!
//! One pool of 8-GPU nodes that is never out of stock, so that only the size of the warm pool decides. Static pools of
//! every size, and Muster's forecast at every service level, on the same gangs.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use muster_core::ahead::{Ahead, ForecastSpec};
use muster_core::pool::PoolSpec;
use muster_core::time::{Span, Time};
use muster_sim::Job;
use muster_sim::cloud::CloudModel;
use muster_sim::summary::percentile;
use serde::Serialize;

use crate::rivals::Market;
use crate::supply::{self, model, round, strategies};

/// Measure gang hits against idle nodes, for static warm pools and for the forecast.
///
/// One JSON object per trace and pool; the last one of a trace has the savings of the forecast at each of its hit
/// rates against the static pool that reaches the same.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// Print one JSON object per line instead of a table
    #[arg(long)]
    json: bool,
    /// A trace with the columns job_id,submission_time,duration,num_gpu, gzipped or not; may be repeated
    #[arg(long, value_name = "FILE")]
    trace: Vec<PathBuf>,
    /// Where the ITP traces are, when no trace is named
    #[arg(long, value_name = "DIR", default_value_os_t = supply::default_anchors())]
    anchors: PathBuf,
    /// Only jobs submitted within so many days of the first
    #[arg(long, value_name = "N")]
    days: Option<u64>,
}

/// Sizes of static pools.
const SIZES: [u32; 11] = [0, 1, 2, 4, 8, 16, 24, 32, 48, 96, 160];
/// Hit rates that the forecast aims at, in thousandths.
const AIMS: [u32; 8] = [500, 700, 800, 900, 950, 980, 990, 999];
/// Gangs of the first days are not counted: the forecast has no history then.
const UNCOUNTED: Span = Span::hours(7 * 24);
/// How long an idle node beyond the target is kept.
const IDLE_AFTER: Span = Span::mins(10);

/// One point of a curve.
#[derive(Clone, Debug, Serialize)]
struct Point {
    trace: String,
    pool: String,
    gang_hit_rate: f64,
    idle_node_hours: f64,
    wait_p95_s: f64,
    cost: f64,
    gangs: usize,
}

/// The savings of the forecast at a hit rate.
#[derive(Clone, Debug, Serialize)]
struct Saved {
    trace: String,
    /// Its aim, the hit rate it reached, and the share of idle time it saves against the static pool of that rate.
    saved: Vec<(String, f64, Option<f64>)>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let Some(traces) = supply::traces(&args.trace, &args.anchors)? else { return Ok(()) };
    if !args.json {
        println!(
            "{:10} {:14} {:>7} {:>12} {:>8} {:>12}",
            "trace", "pool", "hits", "idle node-h", "p95-s", "cost"
        );
    }
    for path in &traces {
        let (name, jobs) = supply::read(path, args.days)?;
        let mut statics = Vec::new();
        for size in SIZES {
            let ahead = Ahead { warm: size, ..Ahead::default() };
            statics.push(measure(args, &name, format!("static-{size}"), &jobs, ahead)?);
        }
        let mut saved = Vec::new();
        for aim in AIMS {
            let spec = ForecastSpec { service_level: aim, ..ForecastSpec::default() };
            let ahead = Ahead { forecast: Some(spec), ..Ahead::default() };
            let label = format!("forecast-{:.1}%", f64::from(aim) / 10.0);
            let point = measure(args, &name, label, &jobs, ahead)?;
            let still = idle_of_static(&statics, point.gang_hit_rate);
            let share = still.map(|still| 1.0 - point.idle_node_hours / still);
            saved.push((point.pool.clone(), point.gang_hit_rate, share.map(|s| round(s, 3))));
        }
        let saved = Saved { trace: name, saved };
        if args.json {
            println!("{}", serde_json::to_string(&saved)?);
        } else {
            for (pool, rate, share) in &saved.saved {
                let share = share.map_or("beyond every static pool".to_owned(), |share| {
                    let word = if share < 0.0 { "more" } else { "less" };
                    let percent = share.abs() * 100.0;
                    format!("{percent:.0}% {word} idle than the static pool of that rate")
                });
                println!("{:10} {pool} reaches {:.1}%: {share}", saved.trace, rate * 100.0);
            }
        }
    }
    Ok(())
}

/// Serves the jobs from one pool, and prints the point.
fn measure(
    args: &Args,
    trace: &str,
    pool: String,
    jobs: &[Job],
    ahead: Ahead,
) -> anyhow::Result<Point> {
    let (mut spec, model): (PoolSpec, CloudModel) = model::endless(IDLE_AFTER);
    spec.ahead = ahead;
    let last = jobs.last().map_or(Time::ZERO, |job| job.submit);
    let market = Market { pools: vec![(spec, model)], gang_failures: None, seed: 1 };
    let mut sim = strategies::stage(market, jobs, strategies::policy())?;
    let from = jobs.first().map_or(Time::ZERO, |job| job.submit) + UNCOUNTED;
    sim.run(from);
    let before = sim.accounts().meter().bought().empty_node_ms();
    // A warm pool is for gangs to come; idle time counts until the last submission.
    sim.run(last);
    let idle = sim.accounts().meter().bought().empty_node_ms() - before;
    sim.run(last + Span::hours(24 * 60));
    let counted = sim.accounts().outcomes().iter().filter(|job| job.submitted >= Some(from));
    let mut waits: Vec<f64> = counted.filter_map(|job| Some(job.wait()?.as_secs_f64())).collect();
    waits.sort_by(f64::total_cmp);
    let hits = waits.iter().filter(|wait| **wait == 0.0).count();
    let point = Point {
        trace: trace.to_owned(),
        pool,
        gang_hit_rate: round(hits as f64 / waits.len().max(1) as f64, 4),
        idle_node_hours: round(idle as f64 / 3_600_000.0, 1),
        wait_p95_s: round(percentile(&waits, 0.95), 1),
        cost: round(sim.accounts().meter().bought().cost().as_units(), 2),
        gangs: waits.len(),
    };
    if args.json {
        println!("{}", serde_json::to_string(&point)?);
    } else {
        println!(
            "{:10} {:14} {:>6.1}% {:>12.1} {:>8.0} {:>12.0}",
            point.trace,
            point.pool,
            point.gang_hit_rate * 100.0,
            point.idle_node_hours,
            point.wait_p95_s,
            point.cost
        );
    }
    Ok(point)
}

/// The idle time of the static pool that reaches a hit rate, between the sizes that were measured.
fn idle_of_static(statics: &[Point], rate: f64) -> Option<f64> {
    let next = statics.iter().position(|point| point.gang_hit_rate >= rate)?;
    let Some(before) = next.checked_sub(1).map(|at| &statics[at]) else {
        return Some(statics[next].idle_node_hours);
    };
    let after = &statics[next];
    let part =
        (rate - before.gang_hit_rate) / (after.gang_hit_rate - before.gang_hit_rate).max(1e-9);
    Some(before.idle_node_hours + part * (after.idle_node_hours - before.idle_node_hours))
}
