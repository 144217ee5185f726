//! Running and waiting capacity over time.

use muster_core::time::Time;

use crate::report::job::JobRun;
use crate::report::stats::buckets::{Grid, Level};
use crate::report::stats::top::Top;

/// One run over time: the mean in each bucket, in GPUs or cores.
#[derive(Clone, PartialEq, Debug)]
pub struct Timeline {
    /// Running, queue by queue in the order of [`super::Report::bands`].
    pub running: Vec<Vec<f64>>,
    /// Waiting and started later, queue by queue.
    pub waiting: Vec<Vec<f64>>,
    /// Waiting and not started by the end.
    pub never: Vec<f64>,
}

impl Timeline {
    pub(crate) fn of(lives: &[JobRun], bands: &Top, grid: Grid, now: Time) -> Self {
        let mut running = vec![Level::new(grid); bands.places()];
        let mut waiting = running.clone();
        let mut never = Level::new(grid);
        for life in lives {
            let band = bands.place(life.asked.queue);
            if let Some((from, to, size)) = life.run(now) {
                running[band].add(from, to, size);
            }
            match (life.submitted, life.started) {
                (Some(from), Some(to)) => waiting[band].add(from, to, life.asked.least),
                (Some(from), None) => never.add(from, grid.to(), life.asked.least),
                (None, _) => {}
            }
        }
        let means = |levels: &[Level]| levels.iter().map(Level::means).collect();
        Self { running: means(&running), waiting: means(&waiting), never: never.means() }
    }
}
