//! The results of a trace as one line: elasticity on beside off.

use muster_core::time::Span;
use muster_sim::accounts::Outcome;
use muster_sim::summary::percentile;
use serde::Serialize;

use crate::elastic::cluster::Measured;
use crate::elastic::measure::Args;
use crate::supply::round;

/// The results on a trace. Completion times of all runs are taken together; counts are per run. The first fourteen keep
/// their names and their order, because scripts read them.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Line {
    /// The trace's name.
    pub(crate) trace: String,
    /// Gangs in all, and those that are elastic when elasticity is on.
    pub(crate) gangs: usize,
    elastic: usize,
    /// Nodes of the cluster, with 8 GPUs each.
    nodes: u32,
    /// Mean time from submission to end: all gangs rigid, and part of them elastic.
    pub(crate) mean_jct_off_s: f64,
    pub(crate) mean_jct_on_s: f64,
    /// Below zero where elasticity makes it shorter.
    mean_jct_change_percent: f64,
    p99_jct_off_s: f64,
    p99_jct_on_s: f64,
    /// GPUs in use as a part of all, from the first submission to the last.
    utilisation_off: f64,
    utilisation_on: f64,
    /// Resizes of running gangs.
    resizes: u64,
    /// Gangs, elastic or not, that end later than in the rigid run by more than the resize cost.
    worse_than_rigid: f64,
    /// How much later the worst of them ends.
    worse_by_max_s: f64,
    /// 99 of 100 gangs end no more than this later than in the rigid run; below zero if they all end sooner.
    worse_by_p99_s: f64,
    /// Of those that are worse, the ones that start later than in the rigid run.
    started_later: f64,
    /// Gangs that take longer from start to end than when rigid, by more than the resize cost.
    stretched: f64,
    stretched_by_max_s: f64,
    /// The change of the mean for gangs that are elastic when elasticity is on, and for those that never are.
    elastic_change_percent: f64,
    rigid_change_percent: f64,
    /// Mean time from submission to start.
    mean_wait_off_s: f64,
    mean_wait_on_s: f64,
    /// Gangs evicted, in all runs; none here, as all have the same priority.
    evictions: u64,
    runs: usize,
    /// Wall time of all runs.
    pub(crate) seconds: f64,
}

/// One gang in both runs, in seconds.
struct Both {
    is_elastic: bool,
    off: f64,
    on: f64,
    off_wait: f64,
    on_wait: f64,
}

impl Both {
    /// How much later it ends than when rigid.
    fn later(&self) -> f64 {
        self.on - self.off
    }
    /// How much longer it takes from start to end than when rigid.
    fn stretch(&self) -> f64 {
        (self.on - self.on_wait) - (self.off - self.off_wait)
    }
}

fn both((off, on): &(Measured, Measured)) -> Vec<Both> {
    let secs = |span: Option<Span>| span.expect("every gang has ended").as_secs_f64();
    let pairs = off.outcomes.iter().zip(&on.outcomes).zip(&on.jobs);
    pairs
        .map(|((off, on), job)| Both {
            is_elastic: !job.gang.is_rigid(),
            off: secs(off.completion()),
            on: secs(on.completion()),
            off_wait: secs(Outcome::wait(off)),
            on_wait: secs(Outcome::wait(on)),
        })
        .collect()
}

impl Line {
    /// Several pairs of runs, off and on, each with other gangs elastic.
    pub(crate) fn of(
        trace: &str,
        args: &Args,
        nodes: u32,
        pairs: &[(Measured, Measured)],
        seconds: f64,
    ) -> Self {
        let all: Vec<Both> = pairs.iter().flat_map(both).collect();
        let runs = pairs.len().max(1);
        let cost = args.resize_cost.as_secs_f64();
        let mean =
            |of: &dyn Fn(&Both) -> f64| all.iter().map(of).sum::<f64>() / all.len().max(1) as f64;
        let p99 = |of: &dyn Fn(&Both) -> f64| {
            let mut sorted: Vec<f64> = all.iter().map(of).collect();
            sorted.sort_by(f64::total_cmp);
            round(percentile(&sorted, 0.99), 0)
        };
        let most = |of: &dyn Fn(&Both) -> f64| round(all.iter().map(of).fold(0.0, f64::max), 0);
        let count = |of: &dyn Fn(&Both) -> bool| all.iter().filter(|both| of(both)).count();
        let per_run = |of: &dyn Fn(&Both) -> bool| round(count(of) as f64 / runs as f64, 1);
        let change = |of: &dyn Fn(&Both) -> bool| {
            let some = || all.iter().filter(|both| of(both));
            percent(some().map(|both| both.off).sum(), some().map(|both| both.on).sum())
        };
        let came = |of: &dyn Fn(&(Measured, Measured)) -> f64| {
            pairs.iter().map(of).sum::<f64>() / runs as f64
        };
        Self {
            trace: trace.to_owned(),
            gangs: all.len() / runs,
            elastic: count(&|both| both.is_elastic) / runs,
            nodes,
            mean_jct_off_s: round(mean(&|both| both.off), 0),
            mean_jct_on_s: round(mean(&|both| both.on), 0),
            mean_jct_change_percent: change(&|_| true),
            p99_jct_off_s: p99(&|both| both.off),
            p99_jct_on_s: p99(&|both| both.on),
            utilisation_off: round(came(&|(off, _)| off.utilisation), 3),
            utilisation_on: round(came(&|(_, on)| on.utilisation), 3),
            resizes: came(&|(_, on)| on.resizes as f64).round() as u64,
            worse_than_rigid: per_run(&|both| both.later() > cost),
            worse_by_max_s: most(&Both::later),
            worse_by_p99_s: p99(&Both::later),
            started_later: per_run(&|both| both.later() > cost && both.on_wait > both.off_wait),
            stretched: per_run(&|both| both.stretch() > cost),
            stretched_by_max_s: most(&Both::stretch),
            elastic_change_percent: change(&|both| both.is_elastic),
            rigid_change_percent: change(&|both| !both.is_elastic),
            mean_wait_off_s: round(mean(&|both| both.off_wait), 0),
            mean_wait_on_s: round(mean(&|both| both.on_wait), 0),
            evictions: pairs.iter().map(|(_, on)| on.evictions).sum(),
            runs: pairs.len(),
            seconds: round(seconds, 1),
        }
    }

    /// The heading of the table.
    pub(crate) fn heading() -> String {
        format!(
            "{:<10} {:>6} {:>5} {:>8} {:>8} {:>6} {:>8} {:>8} {:>6} {:>6} {:>7} {:>6} {:>7} {:>7} {:>9} {:>9}",
            "trace",
            "gangs",
            "nodes",
            "off-mean",
            "on-mean",
            "%",
            "off-p99",
            "on-p99",
            "off-u",
            "on-u",
            "resizes",
            "worse",
            "max-s",
            "p99-s",
            "stretched",
            "max-s"
        )
    }
    /// One row of it.
    pub(crate) fn row(&self) -> String {
        format!(
            "{:<10} {:>6} {:>5} {:>8.0} {:>8.0} {:>6.1} {:>8.0} {:>8.0} {:>6.3} {:>6.3} {:>7} {:>6.1} {:>7.0} {:>7.0} {:>9.1} {:>9.0}",
            self.trace,
            self.gangs,
            self.nodes,
            self.mean_jct_off_s,
            self.mean_jct_on_s,
            self.mean_jct_change_percent,
            self.p99_jct_off_s,
            self.p99_jct_on_s,
            self.utilisation_off,
            self.utilisation_on,
            self.resizes,
            self.worse_than_rigid,
            self.worse_by_max_s,
            self.worse_by_p99_s,
            self.stretched,
            self.stretched_by_max_s
        )
    }
}

/// All gangs of all traces together, in one sentence.
pub(crate) fn together(lines: &[Line]) -> String {
    let sum = |of: &dyn Fn(&Line) -> f64| -> f64 {
        lines.iter().map(|line| line.gangs as f64 * of(line)).sum()
    };
    let gangs = sum(&|_| 1.0).max(1.0);
    let (off, on) = (sum(&|line| line.mean_jct_off_s), sum(&|line| line.mean_jct_on_s));
    let change = percent(off, on);
    format!("all {gangs} gangs: mean {:.0} s off, {:.0} s on: {change} %", off / gangs, on / gangs)
}

/// By how many percent something changes.
fn percent(from: f64, to: f64) -> f64 {
    round((to / from.max(f64::MIN_POSITIVE) - 1.0) * 100.0, 1)
}
