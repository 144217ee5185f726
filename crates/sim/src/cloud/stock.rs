//! Stock of an offering: alternates between in stock, sometimes with only a few machines left, and out of stock.

use muster_core::time::{Span, Time};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp};

use crate::cloud::model::StockModel;

/// Up-states in which only a few machines are left: partial grants were measured in 6 to 27 % of them.
const FEW_LEFT: f64 = 0.15;

/// A process that is in stock and out of stock by turns. It advances with time only, never with requests.
#[derive(Clone, Debug)]
pub(crate) struct Stock {
    rng: ChaCha8Rng,
    model: StockModel,
    up: bool,
    until: Time,
    /// Machines left in this up-state; unlimited when absent.
    left: Option<u32>,
}

impl Stock {
    /// Starts up or out in proportion to how long each lasts.
    pub(crate) fn new(rng: ChaCha8Rng, model: StockModel) -> Self {
        let mut stock = Self { rng, model, up: false, until: Time::ZERO, left: None };
        let up = stock.rng.random_bool(model.share_up());
        stock.turn(up);
        stock
    }

    /// Whether it is in stock now, be it with few left.
    pub(crate) fn is_up(&mut self, now: Time) -> bool {
        while self.until <= now {
            self.turn(!self.up);
        }
        self.up
    }
    /// Takes one machine if one is left.
    pub(crate) fn take(&mut self, now: Time) -> bool {
        let has = self.is_up(now) && self.left != Some(0);
        if let Some(left) = self.left.as_mut().filter(|_| has) {
            *left -= 1;
        }
        has
    }
    /// Returns one machine.
    pub(crate) fn give_back(&mut self, now: Time) {
        if self.is_up(now) {
            self.left = self.left.map(|left| left + 1);
        }
    }

    fn turn(&mut self, up: bool) {
        let Self { rng, model, .. } = self;
        self.up = up;
        self.until += exponential(rng, if up { model.mean_up } else { model.mean_down });
        let (few, left) = (rng.random_bool(FEW_LEFT), rng.random_range(1..=16));
        self.left = few.then_some(left);
    }
}

/// A random span with this mean; never zero.
pub(crate) fn exponential(rng: &mut ChaCha8Rng, mean: Span) -> Span {
    let rate = 1.0 / mean.as_secs_f64().max(1e-3);
    Span(Span::from_secs_f64(Exp::new(rate).expect("a positive rate").sample(rng)).0.max(1))
}
