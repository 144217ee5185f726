//! What was asked of a pool: which gangs came, when, and how many of its nodes each needed.
//!
//! Kept only for pools that want to know what to expect. A forecaster reads it; nothing here guesses.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::history::remembered::PastDemand;
use crate::units::time::{Span, Time};

/// One gang that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
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
    /// Up to when gangs were noted by whoever counted before: those that are found later than that are news.
    noted_until: Option<Time>,
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
    /// Goes on from what was noted. Nothing of it was later than now: clocks of hosts differ.
    pub(crate) fn remember(&mut self, past: &PastDemand, now: Time) {
        let until = past.until.min(now);
        let mut known: Vec<Arrival> = past.arrivals.clone();
        known.retain(|arrival| arrival.at <= until);
        known.sort_by_key(|arrival| arrival.at);
        let begun = self.since.map_or(past.since, |since| since.min(past.since));
        *self = Self { since: Some(begun), noted_until: Some(until), ..Self::default() };
        known.into_iter().for_each(|arrival| self.note(arrival));
    }
    /// Whether a gang that came at an instant was seen to come by whoever counted then, or before anybody did.
    pub(crate) fn has_noted(&self, at: Time) -> bool {
        self.noted_until.or(self.since).is_none_or(|until| at <= until)
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
