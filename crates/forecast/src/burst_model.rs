//! Model of demand that arrives in bursts, updated so that each arrival is read once.
//!
//! Time advances in steps. The gangs of one step are one *burst*: what matters is that they arrived together. A gang
//! counts by its need, the nodes that had to be free for it, so the model learns how often a pool of each size falls
//! short. See `docs/forecast.md` for what was tried and measured.

use muster_core::time::{Span, Time};
use serde::{Deserialize, Serialize};

use crate::arrival::{Arrival, LeadWindow};
use crate::burst_rate::{self, BurstRate};
use crate::calibration::Calibration;
use crate::level::{COUNT, LEVELS, PerLevel, holding};
use crate::miss_curve::MissCurve;
use crate::size_class::{self, CLASSES, SizeClass, class_of};

/// No price is scored on the first day: its sizes were computed from no history.
const WARM_UP: Span = Span::hours(24);

/// The model of one pool. Same arrivals, same model.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct BurstModel {
    since: Time,
    until: Time,
    lead: Span,
    step: Span,
    window: LeadWindow,
    /// Needs of the gangs since the last step.
    burst: Vec<u32>,
    burst_rate: BurstRate,
    classes: Vec<SizeClass>,
    calibration: Calibration,
    /// The component rates at the last step.
    rate_components: [f64; burst_rate::COMPONENTS],
    class_components: [[f64; size_class::COMPONENTS]; CLASSES],
}

impl BurstModel {
    /// An empty model of a pool observed from `since` on, whose nodes are ready `lead` after they are requested. The
    /// pool's target is refreshed every `step`; `season` is the shortest season, most often a day.
    pub fn new(since: Time, lead: Span, step: Span, season: Span) -> Self {
        Self {
            since,
            until: since,
            lead,
            step: step.max(Span(1)),
            window: LeadWindow::default(),
            burst: Vec::new(),
            burst_rate: BurstRate::new(season),
            classes: (0..CLASSES).map(SizeClass::new).collect(),
            calibration: Calibration::new(),
            rate_components: [0.0; burst_rate::COMPONENTS],
            class_components: [[0.0; size_class::COMPONENTS]; CLASSES],
        }
    }
    /// Since when the pool is observed.
    pub fn since(&self) -> Time {
        self.since
    }
    /// Up to when arrivals are learned: the last whole step.
    pub fn until(&self) -> Time {
        self.until
    }
    /// Learns the arrivals since the last call, by time, and the time that passed up to `now`.
    ///
    /// Arrivals after `now` are the caller's mistake: they are taken as having come now.
    pub fn learn(&mut self, arrivals: &[Arrival], now: Time) {
        let decay_factors =
            (BurstRate::decay_factors(self.step), size_class::decay_factors(self.step));
        for arrival in arrivals {
            let at = arrival.at.clamp(self.until, now.max(self.until));
            while self.until + self.step < at {
                self.advance(&decay_factors);
            }
            let need = self.window.need(Arrival { at, ..*arrival }, self.lead);
            if at.since(self.since) > WARM_UP {
                self.calibration.score(at, need, self.lead);
            }
            self.burst.push(need);
        }
        while self.until + self.step <= now {
            self.advance(&decay_factors);
        }
    }
    fn advance(&mut self, (rate_decay, class_decay): &([f64; 6], [f64; 4])) {
        self.until += self.step;
        let needs = std::mem::take(&mut self.burst);
        let neediest = needs.iter().copied().max().unwrap_or(0);
        let burst = (neediest > 0).then_some(&self.rate_components);
        let rate_components = self.burst_rate.advance(self.until, self.step, rate_decay, burst);
        for class in &mut self.classes {
            class.decay(self.step, class_decay);
        }
        if neediest > 0 {
            // A gang without a need is hit anyway, and no pool holds a need above the last level.
            let levels: Vec<usize> =
                needs.iter().filter(|&&need| need > 0).filter_map(|&need| holding(need)).collect();
            let class = class_of(neediest);
            self.classes[class].burst(&levels, &self.class_components[class]);
        }
        self.rate_components = rate_components;
        let intensity = self.burst_rate.intensity(&rate_components);
        for (class, components) in self.classes.iter_mut().zip(&mut self.class_components) {
            *components = class.components(intensity);
            class.advance(components, self.step);
        }
        let miss_curve = self.miss_curve_given(&self.class_components);
        self.calibration.decide(self.until, &miss_curve, self.lead);
        // The allocation is reused for the next burst.
        self.burst = needs;
        self.burst.clear();
    }
    /// What pools of each size would miss at `at`, if the intensity stays as it is.
    fn miss_curve(&self, at: Time) -> MissCurve {
        let intensity = self.burst_rate.intensity(&self.burst_rate.components(at));
        self.miss_curve_given(&std::array::from_fn(|class| {
            self.classes[class].components(intensity)
        }))
    }
    fn miss_curve_given(&self, components: &[[f64; size_class::COMPONENTS]; CLASSES]) -> MissCurve {
        let mut gangs: PerLevel = [0.0; COUNT];
        for (class, components) in self.classes.iter().zip(components) {
            class.expect(components, &mut gangs);
        }
        MissCurve::of(&gangs)
    }
    /// The pool size at which one free node more would not be worth `price`, in gangs missed per second, for a
    /// node.
    pub fn size_at_price(&self, at: Time, price: f64) -> u32 {
        self.miss_curve(at).size_at_price(price)
    }
    /// The highest price that would so far have hit this share of the gangs within reach.
    pub fn price_for(&self, hit_rate: f64) -> f64 {
        self.calibration.price_for(hit_rate)
    }
    /// The largest pool ever worth having.
    pub const LARGEST: u32 = LEVELS[COUNT - 1];
}
