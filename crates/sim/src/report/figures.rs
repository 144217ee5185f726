//! Key figures of a set of jobs.

use muster_core::time::Time;

use crate::report::job::{JobRun, hours};
use crate::report::stats::quantile::mean;
use crate::report::summary::percentile;

/// Key figures of some jobs of one run. Waits and slowdowns are of those that ended.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Figures {
    /// How many jobs there are.
    pub jobs: usize,
    /// How many ended.
    pub ended: usize,
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
    /// Average bounded slowdown.
    pub avg_bsld: f64,
    /// Capacity used, in GPU-hours or core-hours.
    pub used_hours: f64,
}

impl Figures {
    pub(crate) fn of<'a>(lives: impl Iterator<Item = &'a JobRun>, now: Time) -> Self {
        let (mut waits, mut slowdowns, mut jobs, mut used) = (Vec::new(), Vec::new(), 0, 0);
        for life in lives {
            jobs += 1;
            used += life.used(now);
            waits.extend(life.wait_s());
            slowdowns.extend(life.slowdown());
        }
        waits.sort_by(f64::total_cmp);
        Self {
            jobs,
            ended: waits.len(),
            mean_wait_s: mean(&waits),
            p50_wait_s: percentile(&waits, 0.50),
            p95_wait_s: percentile(&waits, 0.95),
            p99_wait_s: percentile(&waits, 0.99),
            max_wait_s: waits.last().copied().unwrap_or(0.0),
            avg_bsld: mean(&slowdowns),
            used_hours: hours(used),
        }
    }
}
