//! The results of a strategy on a trace as one line.

use muster_sim::accounts::Outcome;
use muster_sim::accounts::State;
use muster_sim::summary::percentile;
use serde::Serialize;

use crate::supply::strategies::Measured;

/// The results of a strategy on a trace. The order of the first ten is fixed, because scripts read them.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Line {
    /// The trace's name.
    pub(crate) trace: String,
    /// The strategy.
    pub(crate) strategy: &'static str,
    /// Gangs of which some member started before another; the most in one run.
    pub(crate) partial_starts: u64,
    /// GPU time of members that waited at the barrier for the rest.
    pub(crate) wasted_gpu_hours: f64,
    /// All machines from launch to release, in dollars.
    pub(crate) cost: f64,
    /// From submission to the start of the last member.
    pub(crate) wait_p50_s: f64,
    /// The 95th percentile.
    pub(crate) wait_p95_s: f64,
    /// The 99th percentile.
    pub(crate) wait_p99_s: f64,
    /// The share of gangs that started at the instant of their submission.
    pub(crate) gang_hit_rate: f64,
    /// Ready nodes with nothing running on them.
    pub(crate) idle_node_hours: f64,
    /// Mean wait.
    pub(crate) wait_mean_s: f64,
    /// Jobs of the trace.
    pub(crate) jobs: usize,
    /// Jobs, of all runs, whose work was not done; none, unless something is very wrong.
    pub(crate) not_ended: usize,
    /// Jobs of more than one member.
    pub(crate) gangs: usize,
    /// Times a gang had to start over.
    pub(crate) restarts: u64,
    /// Orders (or sets of nodes) that were rolled back.
    pub(crate) rollbacks: u64,
    /// Machines requested.
    pub(crate) claims: u64,
    /// Machines that failed, before or in service.
    pub(crate) failed_claims: u64,
    /// GPU-hours bought, from launch to release.
    pub(crate) bought_gpu_hours: f64,
    /// GPU-hours of work that was lost with a machine: chance, and a large part of the differences in cost.
    pub(crate) lost_gpu_hours: f64,
    /// Purchased GPU-hours without work: booting, at the barrier, idle, stranded. This is what a strategy can improve.
    pub(crate) unused_gpu_hours: f64,
    /// GPU-hours of ready nodes with nothing running on them.
    pub(crate) idle_gpu_hours: f64,
    /// GPU-hours unused on nodes that are used.
    pub(crate) stranded_gpu_hours: f64,
    /// Runs, each with another seed.
    pub(crate) seeds: usize,
    /// Wall time of all of them.
    pub(crate) seconds: f64,
}

impl Line {
    /// Several runs of one strategy on one trace: waits are taken together, sums are per run.
    pub(crate) fn of(trace: &str, strategy: &'static str, runs: &[Measured], gangs: usize) -> Self {
        let wait = |outcome: &Outcome| {
            outcome.ended?;
            Some(outcome.wait()?.as_secs_f64())
        };
        let outcomes = || runs.iter().flat_map(|run| run.accounts.outcomes());
        let mut waits: Vec<f64> = outcomes().filter_map(wait).collect();
        waits.sort_by(f64::total_cmp);
        let count = waits.len().max(1) as f64;
        let hits = waits.iter().filter(|wait| **wait == 0.0).count();
        let mean = |figure: &dyn Fn(&Measured) -> f64| {
            runs.iter().map(figure).sum::<f64>() / runs.len().max(1) as f64
        };
        let hours =
            |ms: &dyn Fn(&Measured) -> u64| round(mean(&|run| ms(run) as f64) / 3_600_000.0, 1);
        let number = |of: &dyn Fn(&Measured) -> u64| mean(&|run| of(run) as f64).round() as u64;
        Self {
            trace: trace.to_owned(),
            strategy,
            partial_starts: runs.iter().map(|run| run.work().partial_starts).max().unwrap_or(0),
            wasted_gpu_hours: hours(&|run| run.work().wasted_gpu_ms),
            cost: round(mean(&|run| run.bought().cost().as_units()), 2),
            wait_p50_s: round(percentile(&waits, 0.50), 1),
            wait_p95_s: round(percentile(&waits, 0.95), 1),
            wait_p99_s: round(percentile(&waits, 0.99), 1),
            gang_hit_rate: round(hits as f64 / count, 4),
            idle_node_hours: hours(&|run| run.bought().empty_node_ms()),
            wait_mean_s: round(waits.iter().sum::<f64>() / count, 1),
            jobs: outcomes().count() / runs.len().max(1),
            not_ended: outcomes().count() - waits.len(),
            gangs,
            restarts: number(&|run| {
                run.accounts.outcomes().iter().map(|o| u64::from(o.restarts)).sum()
            }),
            rollbacks: number(&|run| run.accounts.rollbacks),
            claims: number(&|run| run.accounts.meter().claims()),
            failed_claims: number(&|run| run.accounts.meter().failed_claims()),
            bought_gpu_hours: hours(&|run| run.bought().bought_gpu_ms()),
            lost_gpu_hours: hours(&|run| run.work().lost_gpu_ms),
            unused_gpu_hours: hours(&|run| {
                run.bought().bought_gpu_ms().saturating_sub(run.work().busy_gpu_ms)
            }),
            idle_gpu_hours: hours(&|run| run.bought().empty_gpu_ms()),
            stranded_gpu_hours: hours(&|run| run.bought().gpu_ms(State::Stranded)),
            seeds: runs.len(),
            seconds: round(runs.iter().map(|run| run.seconds).sum(), 2),
        }
    }

    /// The heading of the table.
    pub(crate) fn heading() -> String {
        format!(
            "{:<10} {:<18} {:>8} {:>9} {:>12} {:>8} {:>8} {:>9} {:>6} {:>8} {:>9} {:>6}",
            "trace",
            "strategy",
            "partial",
            "wasted-h",
            "cost",
            "p50-s",
            "p95-s",
            "p99-s",
            "hits",
            "idle-h",
            "unused-h",
            "took-s"
        )
    }
    /// One row of it.
    pub(crate) fn row(&self) -> String {
        format!(
            "{:<10} {:<18} {:>8} {:>9.1} {:>12.0} {:>8.0} {:>8.0} {:>9.0} {:>5.1}% {:>8.1} {:>9.0} {:>6.1}",
            self.trace,
            self.strategy,
            self.partial_starts,
            self.wasted_gpu_hours,
            self.cost,
            self.wait_p50_s,
            self.wait_p95_s,
            self.wait_p99_s,
            self.gang_hit_rate * 100.0,
            self.idle_node_hours,
            self.unused_gpu_hours,
            self.seconds
        )
    }
}

/// So many digits after the point: more would be noise.
pub(crate) fn round(value: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits);
    (value * scale).round() / scale
}
