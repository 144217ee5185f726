//! Fairness: shares and slowdowns of queues and users.

use std::sync::Arc;

use muster_core::queue::QueueSpec;
use muster_core::time::{Span, Time};

use crate::report::job::JobRun;
use crate::report::stats::buckets::{Grid, Level};
use crate::report::stats::quantile::mean;
use crate::report::stats::top::Top;

/// Whether figures are by queue or by user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// Queues.
    Queue,
    /// Users.
    User,
}

impl By {
    fn number(self, life: &JobRun) -> usize {
        match self {
            Self::Queue => life.asked.queue,
            Self::User => life.asked.user,
        }
    }
}

/// Shares of capacity: by queue where there are several, by user otherwise.
#[derive(Clone, PartialEq, Debug)]
pub struct Shares {
    /// Whether these are queues or users.
    pub by: By,
    /// Those with the largest demand; the others are left out.
    pub top: Top,
    /// The fair share of each by weight; among users, the same for all.
    pub dues: Vec<f64>,
    /// The length of the sliding window of each share.
    pub window: Span,
}

/// Points of a curve of shares. The window covers several of them, so that more would show no more.
const POINTS: usize = 150;
/// The window is this part of all buckets.
const WINDOW: usize = 20;
/// Use below this fraction of the peak gives no share.
const HARDLY: u128 = 10;

impl Shares {
    pub(crate) fn new(by: By, top: Top, dues: Vec<f64>, grid: Grid) -> Self {
        let window = grid.width.saturating_mul(2 * half_window(grid) as u64 + 1);
        Self { by, top, dues, window }
    }

    /// For each of those named, its share of the use around each point; none while use is low, as a single job would then
    /// have all of it.
    /// Points are evenly spaced from the start of the grid to its end.
    pub(crate) fn of_run(&self, lives: &[JobRun], grid: Grid, now: Time) -> Vec<Vec<Option<f64>>> {
        let mut used = vec![Level::new(grid); self.top.places()];
        let mut all = Level::new(grid);
        for life in lives {
            let Some((from, to, size)) = life.run(now) else { continue };
            all.add(from, to, size);
            used[self.top.place(self.by.number(life))].add(from, to, size);
        }
        let all = slide(&all.areas(), grid);
        let hardly = all.iter().max().map_or(0, |most| most / HARDLY);
        let part =
            |(used, all): (&u128, &u128)| (*all > hardly).then(|| *used as f64 / *all as f64);
        let parts =
            |level: &Level| slide(&level.areas(), grid).iter().zip(&all).map(part).collect();
        used.iter().take(self.top.named.len()).map(parts).collect()
    }
}

fn half_window(grid: Grid) -> usize {
    grid.buckets / WINDOW / 2
}

/// The sum over the window around each point.
fn slide(areas: &[u128], grid: Grid) -> Vec<u128> {
    let mut before = vec![0];
    for area in areas {
        before.push(before[before.len() - 1] + area);
    }
    let (half, points) = (half_window(grid), POINTS.min(areas.len()));
    let around = |point: usize| {
        let middle = point * (areas.len() - 1) / (points - 1).max(1);
        before[(middle + half + 1).min(areas.len())] - before[middle.saturating_sub(half)]
    };
    (0..points).map(around).collect()
}

/// Each queue's fair share by weight, among the queues that have jobs. A queue with jobs of its own and with child
/// queues counts among its children with weight 1.
pub(crate) fn by_weight(queues: &[QueueSpec], has_jobs: &[bool]) -> Vec<f64> {
    let below = |above: Option<&Arc<str>>| -> Vec<usize> {
        (0..queues.len()).filter(|i| queues[*i].parent.as_ref() == above).collect()
    };
    let below_each: Vec<Vec<usize>> = queues.iter().map(|queue| below(Some(&queue.name))).collect();
    let mut busy = has_jobs.to_vec();
    // Parents come first, so that going backwards sees every queue after its children.
    for i in (0..queues.len()).rev() {
        busy[i] |= below_each[i].iter().any(|child| busy[*child]);
    }
    let mut parts = vec![0.0; queues.len()];
    let mut open = vec![(1.0, None, below(None))];
    while let Some((part, own, siblings)) = open.pop() {
        let siblings: Vec<usize> = siblings.into_iter().filter(|i| busy[*i]).collect();
        let weight = |i: &usize| f64::from(queues[*i].weight);
        let own_weight = if own.is_some() { 1.0 } else { 0.0 };
        let all = own_weight + siblings.iter().map(weight).sum::<f64>();
        let share = |weight: f64| if all > 0.0 { part * weight / all } else { 0.0 };
        if let Some(own) = own {
            parts[own] = share(own_weight);
        }
        for i in siblings {
            if below_each[i].iter().any(|child| busy[*child]) {
                open.push((share(weight(&i)), has_jobs[i].then_some(i), below_each[i].clone()));
            } else {
                parts[i] = share(weight(&i));
            }
        }
    }
    parts
}

/// Mean bounded slowdowns of one run, user by user or queue by queue.
#[derive(Clone, PartialEq, Debug)]
pub struct Slowdowns {
    /// Whether these are users or queues.
    pub by: By,
    /// How many have jobs that ended.
    pub among: usize,
    /// The share of them with a mean of at most this; ascending, a few hundred points at most.
    pub curve: Vec<(f64, f64)>,
    /// Jain's index of the means.
    pub jain: f64,
}

/// Points of the curve of slowdowns.
const SLOWDOWNS_MAX: usize = 300;

impl Slowdowns {
    pub(crate) fn of(lives: &[JobRun], by: By, among: usize) -> Self {
        let mut each = vec![Vec::new(); among];
        for life in lives {
            each[by.number(life)].extend(life.slowdown());
        }
        let mut means: Vec<f64> =
            each.iter().filter(|values| !values.is_empty()).map(|values| mean(values)).collect();
        means.sort_by(f64::total_cmp);
        let points = means.len().min(SLOWDOWNS_MAX);
        let point = |i: usize| {
            let rank = i * (means.len() - 1) / (points - 1).max(1);
            ((rank + 1) as f64 / means.len() as f64, means[rank])
        };
        Self { by, among: means.len(), curve: (0..points).map(point).collect(), jain: jain(&means) }
    }
}

/// Jain's index: 1 when all values are the same, 1/n when all but one of n are zero.
pub fn jain(values: &[f64]) -> f64 {
    let sum = values.iter().fold(0.0, |sum, value| sum + value);
    let squares = values.iter().fold(0.0, |sum, value| sum + value * value);
    if squares > 0.0 { sum * sum / (values.len() as f64 * squares) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(name: &str, parent: Option<&str>, weight: u32) -> QueueSpec {
        QueueSpec { parent: parent.map(Into::into), weight, ..QueueSpec::open(name) }
    }

    #[test]
    fn jains_index_is_one_for_equals_and_one_nth_for_a_single_winner() {
        assert_eq!(jain(&[3.0, 3.0, 3.0]), 1.0);
        assert_eq!(jain(&[0.0, 0.0, 8.0, 0.0]), 0.25);
        assert_eq!(jain(&[1.0, 3.0]), 0.8);
        assert_eq!((jain(&[]), jain(&[0.0])), (1.0, 1.0));
    }

    #[test]
    fn fair_shares_go_down_the_tree_among_queues_with_jobs() {
        let tree = [
            queue("research", None, 3),
            queue("product", None, 1),
            queue("idle", None, 96),
            queue("vision", Some("research"), 1),
            queue("speech", Some("research"), 2),
        ];
        let busy = [false, true, false, true, true];
        assert_eq!(by_weight(&tree, &busy), [0.0, 0.25, 0.0, 0.25, 0.5]);
        // Jobs of the parent queue itself count beside those of its children.
        let busy = [true, false, false, true, true];
        assert_eq!(by_weight(&tree, &busy), [0.25, 0.0, 0.0, 0.25, 0.5]);
    }

    #[test]
    fn window_slides_over_the_whole_time() {
        let grid = Grid { from: Time::ZERO, width: Span::secs(1), buckets: 40 };
        let sums = slide(&[1; 40], grid);
        assert_eq!(sums.len(), 40);
        assert_eq!((sums[0], sums[20], sums[39]), (2, 3, 2));
    }
}
