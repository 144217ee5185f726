//! Stock: up for a while, out for a while, and now and then only a few left.

use muster_core::time::{Span, Time};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp};

use super::model::StockModel;

/// Up-states in which only a few machines are left: partial grants were measured in 6 to 27 % of them.
const FEW_LEFT: f64 = 0.15;

/// One offering's stock, advanced only when somebody asks.
#[derive(Clone, Debug)]
pub(super) struct Stock {
    up: bool,
    until: Time,
    left: u32,
}

impl Stock {
    /// Starts up or out in proportion to how long each lasts.
    pub(super) fn new(rng: &mut ChaCha8Rng, now: Time, model: StockModel) -> Self {
        let total = (model.mean_up + model.mean_down).0.max(1) as f64;
        let mut stock = Self { up: false, until: now, left: 0 };
        let up = rng.random_bool(model.mean_up.0 as f64 / total);
        stock.turn(rng, up, model);
        stock
    }
    /// Takes one machine if there is one.
    pub(super) fn take(&mut self, rng: &mut ChaCha8Rng, now: Time, model: StockModel) -> bool {
        while self.until <= now {
            self.turn(rng, !self.up, model);
        }
        let has = self.up && self.left > 0;
        self.left = self.left.saturating_sub(u32::from(has));
        has
    }

    fn turn(&mut self, rng: &mut ChaCha8Rng, up: bool, model: StockModel) {
        self.up = up;
        self.until += exponential(rng, if up { model.mean_up } else { model.mean_down });
        self.left = if rng.random_bool(FEW_LEFT) { rng.random_range(1..=16) } else { u32::MAX };
    }
}

/// A random span with this mean; never zero.
pub(super) fn exponential(rng: &mut ChaCha8Rng, mean: Span) -> Span {
    let rate = 1.0 / mean.as_secs_f64().max(1e-3);
    Span(Span::from_secs_f64(Exp::new(rate).expect("a positive rate").sample(rng)).0.max(1))
}
