//! Run times: how long the gangs of each user ran. Estimates for a user's next gang are derived from them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::units::time::{Span, Time};

/// One completed run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Run {
    /// When it ended.
    pub ended: Time,
    /// How long it took.
    pub lasted: Span,
    /// The submitter's estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Span>,
    /// How many members it had.
    pub members: u32,
}

/// A user's latest runs, the last one first.
pub type Recent = SmallVec<[Run; 2]>;

/// Runs kept per user. Estimates use the last few only, because users change what they run.
const KEPT: usize = 10;
/// Runs of all users kept, for the share of their estimates that they took.
const SHARES_KEPT: usize = 500;
/// Runs needed before an upper bound is computed, and after how many it is computed again.
const UPPER_FROM: usize = 50;
const UPPER_EVERY: u32 = 25;

/// Latest runs by user.
#[derive(Clone, Debug, Default)]
pub struct History {
    by_user: BTreeMap<Arc<str>, VecDeque<Run>>,
    /// Square roots of the shares of their estimates that the latest runs took, in thousandths; and their sum.
    shares: VecDeque<u32>,
    shares_sum: u64,
    /// The share that nearly all of them stay below, as of the last few runs.
    upper: Option<u32>,
    noted: u32,
}

impl History {
    /// What share of their estimates runs usually take, over all users; all of it at first.
    ///
    /// The square of the mean of square roots, so that a few runs that take all of it do not hide the many that take
    /// little.
    pub fn usual_share(&self) -> f64 {
        let mean = (self.shares_sum + 1_000) as f64 / (self.shares.len() + 1) as f64 / 1_000.0;
        mean * mean
    }
    /// What share of their estimates nearly all runs stay within; all of it until there are enough runs.
    pub fn upper_share(&self) -> f64 {
        let root = self.upper.map_or(1.0, |upper| f64::from(upper + 1) / 1_000.0);
        (root * root).min(1.0)
    }
    /// A user's latest runs that ended before `now`, the last one first, without copying them.
    pub fn of_user(&self, user: &str, now: Time) -> impl Iterator<Item = &Run> {
        let runs = self.by_user.get(user);
        runs.into_iter().flatten().rev().filter(move |run| run.ended < now)
    }
    /// A user's latest runs that ended before `now`, the last one first.
    ///
    /// A run that ends at the very instant does not count: it is not known to a gang submitted then.
    pub fn recent(&self, user: &str, now: Time) -> Recent {
        self.of_user(user, now).copied().collect()
    }
    /// Users and their latest runs, the oldest first.
    pub(crate) fn users(&self) -> impl Iterator<Item = (&Arc<str>, impl Iterator<Item = &Run>)> {
        self.by_user.iter().map(|(user, runs)| (user, runs.iter()))
    }
    /// Records a run.
    pub(crate) fn record(&mut self, user: &Arc<str>, run: Run) {
        self.record_share(&run);
        let runs = self.by_user.entry(user.clone()).or_default();
        if runs.len() == KEPT {
            runs.pop_front();
        }
        runs.push_back(run);
    }

    fn record_share(&mut self, run: &Run) {
        let Some(estimate) = run.estimate.filter(|estimate| *estimate > Span::ZERO) else { return };
        let share = (run.lasted.0.min(estimate.0) * 1_000_000 / estimate.0).isqrt();
        if self.shares.len() == SHARES_KEPT {
            self.shares_sum -= u64::from(self.shares.pop_front().unwrap_or(0));
        }
        self.shares.push_back(share as u32);
        self.shares_sum += share;
        self.noted = self.noted.wrapping_add(1);
        if self.noted.is_multiple_of(UPPER_EVERY) && self.shares.len() >= UPPER_FROM {
            let mut sorted: Vec<u32> = self.shares.iter().copied().collect();
            let at = sorted.len() * 99 / 100;
            self.upper = Some(*sorted.select_nth_unstable(at).1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(ended: i64, lasted: u64) -> Run {
        Run { ended: Time(ended), lasted: Span(lasted), estimate: None, members: 1 }
    }

    #[test]
    fn latest_runs_come_first_and_old_ones_are_dropped() {
        let (mut history, ann) = (History::default(), Arc::from("ann"));
        for i in 0..20 {
            history.record(&ann, run(i, i as u64));
        }
        let recent = history.recent("ann", Time(100));
        assert_eq!(recent.len(), KEPT);
        assert_eq!(recent[0].lasted, Span(19));
        assert_eq!(
            history.recent("ann", Time(19))[0].lasted,
            Span(18),
            "not what ends at this instant"
        );
        assert!(history.recent("bob", Time(100)).is_empty());
    }
}
