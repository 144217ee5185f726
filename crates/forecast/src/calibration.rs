//! Calibrates the price of a free node so that the wanted share of gangs is hit.
//!
//! At every step the pool size is computed for a ladder of prices, and kept until it is known which gangs arrived a
//! lead time later. So each price has a record of how it would have done, scored only on arrivals it had not seen. The
//! highest price whose record reaches the wanted hit rate is used.

use std::collections::VecDeque;

use muster_core::time::{Span, Time};
use serde::{Deserialize, Serialize};

use crate::miss_curve::MissCurve;

/// How many prices are on the ladder.
const RUNGS: usize = 40;

/// The price on a rung, in gangs missed per second, for a node: from a node that saves a gang in twelve days to one
/// that saves a gang in two minutes, ten rungs to a factor of ten.
///
/// The lowest rung bounds the pool. One factor of ten lower, a pool that once saw 160 nodes requested at once keeps
/// most of them for weeks, and on the next such day needs others.
fn price(rung: usize) -> f64 {
    10f64.powf(-6.0 + rung as f64 / 10.0)
}

/// The ladder and its record.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Calibration {
    prices: Vec<f64>,
    /// Pool sizes for each price, from when on, as far back as an arrival may still be scored against.
    decided: VecDeque<(Time, Vec<u32>)>,
    hits: Vec<f64>,
    gangs: f64,
}

impl Calibration {
    pub(crate) fn new() -> Self {
        Self {
            prices: (0..RUNGS).map(price).collect(),
            decided: VecDeque::new(),
            hits: vec![0.0; RUNGS],
            gangs: 0.0,
        }
    }
    /// Records what each price would keep free from `at` on.
    pub(crate) fn decide(&mut self, at: Time, miss_curve: &MissCurve, lead: Span) {
        let mut sizes = Vec::new();
        while self.decided.len() > 1 && self.decided[1].0 + lead <= at {
            sizes = self.decided.pop_front().unwrap_or_default().1;
        }
        sizes.clear();
        sizes.extend(miss_curve.sizes_at_prices(self.prices.iter().copied()));
        self.decided.push_back((at, sizes));
    }
    /// Scores the sizes decided a lead time before against a gang that arrived at `at` and needed this many free
    /// nodes.
    ///
    /// A gang that not even the lowest price would have hit is held against none: no affordable price helps, and
    /// paying more for all others because of it gains nothing.
    pub(crate) fn score(&mut self, at: Time, need: u32, lead: Span) {
        while self.decided.len() > 1 && self.decided[1].0 + lead <= at {
            self.decided.pop_front();
        }
        let Some((_, sizes)) = self.decided.front() else { return };
        if need > sizes[0] {
            return;
        }
        self.gangs += 1.0;
        // Sizes fall as prices rise, so those that hit come first.
        let hit = sizes.partition_point(|&size| size >= need);
        self.hits[..hit].iter_mut().for_each(|hits| *hits += 1.0);
    }
    /// The highest price that would have hit this share of the gangs within reach.
    pub(crate) fn price_for(&self, hit_rate: f64) -> f64 {
        let goal = self.gangs * hit_rate;
        let good = self.hits.partition_point(|&hits| hits >= goal && hits > 0.0);
        self.prices[good.saturating_sub(1)]
    }
}
