//! A run before its figures are computed.

use muster_core::time::Time;

use crate::report::job::JobRun;
use crate::report::stats::buckets::{Grid, Level};
use crate::report::summary::Summary;

/// The percentage of all work that counts as nearly all.
const NEARLY_ALL: u128 = 95;

/// A run as it was added.
#[derive(Clone, Debug)]
pub(crate) struct RawRun {
    pub(crate) summary: Summary,
    pub(crate) lives: Vec<JobRun>,
    pub(crate) now: Time,
    pub(crate) bought_gpu_ms: u64,
}

impl RawRun {
    /// When the last job ended; now if one still runs or none ever did.
    pub(crate) fn last(&self) -> Time {
        self.lives.iter().filter_map(|life| Some(life.run(self.now)?.1)).max().unwrap_or(self.now)
    }

    /// When the last job that starts has started and nearly all work is done.
    pub(crate) fn settled(&self, grid: Grid) -> Time {
        let mut level = Level::new(grid);
        for (from, to, size) in self.lives.iter().filter_map(|life| life.run(self.now)) {
            level.add(from, to, size);
        }
        let areas = level.areas();
        let mut left = areas.iter().sum::<u128>() / 100 * (100 - NEARLY_ALL);
        let mut buckets = grid.buckets as u64;
        // From the end backwards, as long as the skipped work is little.
        for (bucket, area) in areas.iter().enumerate().rev() {
            match left.checked_sub(*area) {
                Some(rest) => left = rest,
                None => {
                    buckets = bucket as u64 + 1;
                    break;
                }
            }
        }
        let done = grid.from + grid.width.saturating_mul(buckets);
        self.lives.iter().filter_map(|life| life.started).max().map_or(done, |last| last.max(done))
    }

    /// Values of all jobs that have one, ascending.
    pub(crate) fn sorted(&self, value: impl Fn(&JobRun) -> Option<f64>) -> Vec<f64> {
        let mut values: Vec<f64> = self.lives.iter().filter_map(value).collect();
        values.sort_by(f64::total_cmp);
        values
    }
}
