//! Time in equal buckets: a log of any length becomes a curve of a few hundred points.

use muster_core::time::{Span, Time};

/// Equal buckets of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grid {
    /// Where the first bucket begins.
    pub from: Time,
    /// How long each bucket is.
    pub width: Span,
    /// How many there are.
    pub buckets: usize,
}

impl Grid {
    /// At most `most` buckets from one instant to another.
    pub fn over(from: Time, to: Time, most: usize) -> Self {
        let span = to.since(from).0.max(1);
        let width = span.div_ceil(most as u64);
        Self { from, width: Span(width), buckets: span.div_ceil(width) as usize }
    }

    /// Where the last bucket ends.
    pub fn to(&self) -> Time {
        self.from + self.width.saturating_mul(self.buckets as u64)
    }
}

/// An amount over time, as its mean in each bucket. Adding a stretch takes the same time however long it is.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    grid: Grid,
    /// By how much the level changes from the bucket before, in amount times milliseconds.
    change: Vec<i128>,
    /// The part of a bucket in which an amount begins or ends.
    within: Vec<i128>,
}

impl Level {
    pub(crate) fn new(grid: Grid) -> Self {
        Self { grid, change: vec![0; grid.buckets + 1], within: vec![0; grid.buckets + 1] }
    }

    /// Adds `amount` from one instant to another.
    pub(crate) fn add(&mut self, from: Time, to: Time, amount: u64) {
        self.change_at(from, i128::from(amount));
        self.change_at(to, -i128::from(amount));
    }

    fn change_at(&mut self, at: Time, amount: i128) {
        let width = i128::from(self.grid.width.0);
        let ms = i128::from(at.min(self.grid.to()).since(self.grid.from).0);
        let bucket = ((ms / width) as usize).min(self.grid.buckets);
        let left = (bucket as i128 + 1) * width - ms;
        self.within[bucket] += amount * left;
        if let Some(next) = self.change.get_mut(bucket + 1) {
            *next += amount * width;
        }
    }

    /// Amount times milliseconds in each bucket.
    pub(crate) fn areas(&self) -> Vec<u128> {
        let mut level = 0;
        let buckets = self.change.iter().zip(&self.within).take(self.grid.buckets);
        let area = buckets.map(|(change, within)| {
            level += change;
            u128::try_from(level + within).expect("what ends has begun")
        });
        area.collect()
    }

    /// The mean in each bucket, in whole units.
    pub(crate) fn means(&self) -> Vec<f64> {
        let whole = self.grid.width.0 as f64 * 1_000.0;
        self.areas().iter().map(|area| *area as f64 / whole).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Time {
        Time(secs * 1_000)
    }

    #[test]
    fn grid_covers_the_time_within_the_limit_of_buckets() {
        for (span, most) in [(10, 600), (3_600, 60), (3_601, 60), (1, 7)] {
            let grid = Grid::over(at(5), at(5 + span), most);
            assert!(grid.buckets <= most, "{grid:?}");
            assert!(grid.to() >= at(5 + span), "{grid:?}");
            assert!(grid.to() - grid.width < at(5 + span), "{grid:?}");
        }
        assert_eq!(Grid::over(at(1), at(1), 600).buckets, 1);
    }

    #[test]
    fn downsampling_keeps_the_mean_of_every_bucket() {
        let mut level = Level::new(Grid::over(at(0), at(40), 4));
        level.add(at(5), at(25), 8_000);
        level.add(at(12), at(14), 5_000);
        level.add(at(39), at(40), 10_000);
        assert_eq!(level.means(), [4.0, 9.0, 4.0, 1.0]);
    }

    #[test]
    fn downsampling_loses_no_work() {
        let grid = Grid::over(at(0), at(1_000), 7);
        let mut level = Level::new(grid);
        let mut work = 0;
        for i in 0..200 {
            let (from, to) = (i * 4, i * 4 + i % 37);
            level.add(at(from), at(to), i as u64);
            work += (to - from) as u128 * 1_000 * i as u128;
        }
        assert_eq!(level.areas().iter().sum::<u128>(), work);
    }

    #[test]
    fn time_outside_the_grid_is_cut_off() {
        let mut level = Level::new(Grid::over(at(10), at(20), 2));
        level.add(at(0), at(100), 1_000);
        assert_eq!(level.means(), [1.0, 1.0]);
    }
}
