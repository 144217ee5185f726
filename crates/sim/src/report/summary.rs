//! The summary of one run.

mod disruptions;
mod supply;

use muster_core::time::Span;
use serde::Serialize;

use crate::host::Sim;

pub use disruptions::DisruptionFigures;
pub use supply::{Paid, PoolFigures, Rollbacks, Supply};

/// Key figures of a run; printed by the command line as a table or as JSON.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// The policy's name.
    pub policy: String,
    /// Jobs submitted.
    pub jobs: usize,
    /// Jobs whose work was done.
    pub ended: usize,
    /// Jobs that were refused, cancelled or still wait.
    pub not_ended: usize,
    /// Average bounded slowdown: max(1, (wait + run) / max(run, 10 s)), over jobs that ended.
    pub avg_bsld: f64,
    /// Mean wait in seconds.
    pub mean_wait_s: f64,
    /// Median wait in seconds.
    pub p50_wait_s: f64,
    /// 95th percentile of waits in seconds.
    pub p95_wait_s: f64,
    /// 99th percentile of waits in seconds.
    pub p99_wait_s: f64,
    /// Longest wait in seconds.
    pub max_wait_s: f64,
    /// Mean time from submission to end in seconds.
    pub mean_completion_s: f64,
    /// 99th percentile of that.
    pub p99_completion_s: f64,
    /// From the first submission to the last end, in seconds.
    pub makespan_s: f64,
    /// The share of gangs that started the instant they were submitted.
    pub gang_hit_rate: Option<f64>,
    /// The same of gangs that started on more than one node.
    pub multi_node_hit_rate: Option<f64>,
    /// Orders placed.
    pub orders: u64,
    /// Orders rolled back.
    pub rollbacks: u64,
    /// Nodes requested.
    pub claims: u64,
    /// Nodes that failed, before or in service.
    pub failed_claims: u64,
    /// What bought nodes cost.
    pub cost: f64,
    /// Hours of bought nodes.
    pub node_hours: f64,
    /// GPU-hours members ran.
    pub busy_gpu_hours: f64,
    /// GPU-hours of work that was lost because gangs had to start over.
    pub lost_gpu_hours: f64,
    /// GPU-hours members ran while others of their gang had not started; always 0.
    pub partial_gpu_hours: f64,
    /// Disruptions of running gangs, and their cost. Absent where there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disruptions: Option<DisruptionFigures>,
    /// Purchased time and money by state. Absent without pools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supply: Option<Supply>,
    /// Broken promises; 0 unless something is very wrong. Absent when they were not checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub violations: Option<usize>,
    /// Steps of the simulation.
    pub steps: u64,
}

/// Jobs shorter than this do not count as slowed down more than jobs of this length would be.
const BOUND: Span = Span::secs(10);

impl Summary {
    /// The figures of a run whose accounts are closed.
    pub fn of(sim: &Sim, policy: &str, checked: bool) -> Self {
        let accounts = sim.accounts();
        let mut waits: Vec<f64> = Vec::new();
        let mut completions: Vec<f64> = Vec::new();
        let mut slowdowns = 0.0;
        let (mut first, mut last) = (f64::INFINITY, 0.0_f64);
        for (job, outcome) in sim.jobs().iter().zip(accounts.outcomes()) {
            let (Some(submitted), Some(ended), Some(wait)) =
                (outcome.submitted, outcome.ended, outcome.wait())
            else {
                continue;
            };
            let (wait, run) = (wait.as_secs_f64(), job.run.as_secs_f64());
            waits.push(wait);
            completions.push(ended.since(submitted).as_secs_f64());
            slowdowns += bounded_slowdown(wait, run);
            first = first.min(submitted.as_secs_f64());
            last = last.max(ended.as_secs_f64());
        }
        waits.sort_by(f64::total_cmp);
        completions.sort_by(f64::total_cmp);
        let count = waits.len().max(1) as f64;
        let (meter, bought) = (accounts.meter(), accounts.meter().bought());
        let (work, hits) = (meter.work(), meter.hits());
        Self {
            policy: policy.to_owned(),
            jobs: sim.jobs().len(),
            ended: waits.len(),
            not_ended: sim.jobs().len() - waits.len(),
            avg_bsld: slowdowns / count,
            mean_wait_s: waits.iter().fold(0.0, |sum, wait| sum + wait) / count,
            p50_wait_s: percentile(&waits, 0.50),
            p95_wait_s: percentile(&waits, 0.95),
            p99_wait_s: percentile(&waits, 0.99),
            max_wait_s: waits.last().copied().unwrap_or(0.0),
            mean_completion_s: completions.iter().fold(0.0, |sum, took| sum + took) / count,
            p99_completion_s: percentile(&completions, 0.99),
            makespan_s: (last - first).max(0.0),
            gang_hit_rate: hits.rate(),
            multi_node_hit_rate: hits.wide_rate(),
            orders: accounts.orders,
            rollbacks: accounts.rollbacks,
            claims: meter.claims(),
            failed_claims: meter.failed_claims(),
            cost: bought.cost().as_units(),
            node_hours: hours(bought.bought_node_ms()),
            busy_gpu_hours: hours(work.busy_gpu_ms),
            lost_gpu_hours: hours(work.lost_gpu_ms),
            partial_gpu_hours: hours(work.wasted_gpu_ms),
            disruptions: DisruptionFigures::of(meter.disruptions()),
            supply: Supply::of(meter),
            violations: checked.then(|| sim.violations().len()),
            steps: sim.steps(),
        }
    }
}

fn hours(ms: u64) -> f64 {
    ms as f64 / Span::hours(1).0 as f64
}

/// How many times longer a job took than it ran, both in seconds; at least once, and short jobs counted as ten
/// seconds long.
pub(crate) fn bounded_slowdown(wait: f64, run: f64) -> f64 {
    ((wait + run) / run.max(BOUND.as_secs_f64())).max(1.0)
}

/// The smallest value that at least this share of the sorted values does not exceed.
pub fn percentile(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::percentile;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let waits = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(percentile(&waits, 0.5), 2.0);
        assert_eq!(percentile(&waits, 0.95), 4.0);
        assert_eq!(percentile(&[], 0.5), 0.0);
    }
}
