//! What was asked of a pool: which gangs came, when, and how many of its nodes each needed.
//!
//! Kept only for pools that want to know what to expect. A forecaster reads it; nothing here guesses.

use std::collections::VecDeque;

use crate::time::{Span, Time};

/// One gang that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// When.
    pub at: Time,
    /// How much of the pool's nodes it needs, in thousandths of a node.
    pub nodes_milli: u32,
}

/// Arrivals of the last weeks, oldest first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Demand {
    arrivals: VecDeque<Arrival>,
    since: Option<Time>,
}

/// What is older says nothing about next week.
const REMEMBERED: Span = Span::hours(24 * 8 * 7);
/// And no more than these, however many come.
const MOST: usize = 50_000;

impl Demand {
    /// Begins to remember, if it has not begun.
    pub(crate) fn begin(&mut self, now: Time) {
        self.since.get_or_insert(now);
    }
    /// Notes a gang that came.
    pub(crate) fn note(&mut self, arrival: Arrival) {
        self.arrivals.push_back(arrival);
        let old = |first: &Arrival| arrival.at.since(first.at) > REMEMBERED;
        while self.arrivals.len() > MOST || self.arrivals.front().is_some_and(old) {
            let first = self.arrivals.pop_front().expect("just looked at");
            self.since = self.since.max(Some(first.at));
        }
    }
    /// Gangs that came, oldest first.
    pub fn arrivals(&self) -> &VecDeque<Arrival> {
        &self.arrivals
    }
    /// Since when every gang was noted; none if nobody began to.
    pub fn since(&self) -> Option<Time> {
        self.since
    }
}
