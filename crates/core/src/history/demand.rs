//! The demand for a pool: which gangs arrived, when, and how many of its nodes each needed.
//!
//! Kept only for pools with a forecast. A forecaster reads it; nothing here predicts.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::history::remembered::PastDemand;
use crate::units::time::{Span, Time};

/// The arrival of one gang.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Arrival {
    /// When it was submitted.
    pub at: Time,
    /// How much of the pool's nodes it needs, in thousandths of a node.
    pub nodes_milli: u32,
}

/// Arrivals of the last weeks, oldest first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Demand {
    arrivals: VecDeque<Arrival>,
    since: Option<Time>,
    /// Up to when an earlier process recorded arrivals: gangs found later than that are new.
    recorded_until: Option<Time>,
}

/// Older arrivals say nothing about next week.
const REMEMBERED: Span = Span::hours(24 * 8 * 7);
/// The most arrivals kept.
const MOST: usize = 50_000;

impl Demand {
    /// Begins to record, if it has not begun.
    pub(crate) fn begin(&mut self, now: Time) {
        self.since.get_or_insert(now);
    }
    /// Records an arrival.
    pub(crate) fn record(&mut self, arrival: Arrival) {
        self.arrivals.push_back(arrival);
        let old = |first: &Arrival| arrival.at.since(first.at) > REMEMBERED;
        while self.arrivals.len() > MOST || self.arrivals.front().is_some_and(old) {
            let first = self.arrivals.pop_front().expect("just looked at");
            self.since = self.since.max(Some(first.at));
        }
    }
    /// Continues from stored demand. None of it is later than now: clocks of hosts differ.
    pub(crate) fn restore(&mut self, past: &PastDemand, now: Time) {
        let until = past.until.min(now);
        let mut known: Vec<Arrival> = past.arrivals.clone();
        known.retain(|arrival| arrival.at <= until);
        known.sort_by_key(|arrival| arrival.at);
        let begun = self.since.map_or(past.since, |since| since.min(past.since));
        *self = Self { since: Some(begun), recorded_until: Some(until), ..Self::default() };
        known.into_iter().for_each(|arrival| self.record(arrival));
    }
    /// Whether an arrival at this instant was recorded by an earlier process, or came before recording began.
    pub(crate) fn has_recorded(&self, at: Time) -> bool {
        self.recorded_until.or(self.since).is_none_or(|until| at <= until)
    }
    /// Arrivals, oldest first.
    pub fn arrivals(&self) -> &VecDeque<Arrival> {
        &self.arrivals
    }
    /// Since when every arrival is recorded; none if recording has not begun.
    pub fn since(&self) -> Option<Time> {
        self.since
    }
}
