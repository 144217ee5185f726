//! What was learnt from the gangs that came so far, kept so that each gang is looked at once.
//!
//! Time goes in steps. The gangs of one step are one *burst*: what matters is that they came together. A gang is
//! remembered by its need, the nodes that had to be free for it, so what is learnt is how often pools of which
//! size are found wanting. See `docs/forecast.md` for what was tried and measured.

use muster_core::time::{Span, Time};
use serde::{Deserialize, Serialize};

use crate::arrival::{Arrival, LeadWindow};
use crate::burst_rate::{self, BurstRate};
use crate::calibration::Calibration;
use crate::level::{COUNT, LEVELS, PerLevel, holding};
use crate::miss_curve::MissCurve;
use crate::size_class::{self, CLASSES, SizeClass, class_of};

/// No price is judged by the first day: what it would have done then was guessed from nothing.
const WARM_UP: Span = Span::hours(24);

/// All that is known about demand that comes in bursts. Same arrivals, same memory.
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
    /// What the parts said at the last step.
    rate_components: [f64; burst_rate::COMPONENTS],
    class_components: [[f64; size_class::COMPONENTS]; CLASSES],
}

impl BurstModel {
    /// An empty memory of a pool watched from `since` on, whose nodes are ready `lead` after they are asked for.
    /// The pool's target is refreshed every `step`; `season` is the shortest season, most often a day.
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
    /// Since when the pool is watched.
    pub fn since(&self) -> Time {
        self.since
    }
    /// Up to when everything was learnt: the last whole step.
    pub fn until(&self) -> Time {
        self.until
    }
    /// Takes in the gangs that came since the last call, by time, and the time that passed up to `now`.
    ///
    /// Gangs after `now` are the caller's mistake: they are taken as having come now.
    pub fn learn(&mut self, arrivals: &[Arrival], now: Time) {
        let fading = (BurstRate::fading(self.step), size_class::fading(self.step));
        for arrival in arrivals {
            let at = arrival.at.clamp(self.until, now.max(self.until));
            while self.until + self.step < at {
                self.pass(&fading);
            }
            let need = self.window.need(Arrival { at, ..*arrival }, self.lead);
            if at.since(self.since) > WARM_UP {
                self.calibration.judge(at, need, self.lead);
            }
            self.burst.push(need);
        }
        while self.until + self.step <= now {
            self.pass(&fading);
        }
    }
    fn pass(&mut self, (rate_fading, class_fading): &([f64; 6], [f64; 4])) {
        self.until += self.step;
        let needs = std::mem::take(&mut self.burst);
        let neediest = needs.iter().copied().max().unwrap_or(0);
        let burst = (neediest > 0).then_some(&self.rate_components);
        let rate_components = self.burst_rate.pass(self.until, self.step, rate_fading, burst);
        for class in &mut self.classes {
            class.fade(self.step, class_fading);
        }
        if neediest > 0 {
            // Who needs none is hit anyway, and no pool holds those who need more than the last level.
            let levels: Vec<usize> =
                needs.iter().filter(|&&need| need > 0).filter_map(|&need| holding(need)).collect();
            let class = class_of(neediest);
            self.classes[class].burst(&levels, &self.class_components[class]);
        }
        self.rate_components = rate_components;
        let intensity = self.burst_rate.intensity(&rate_components);
        for (class, components) in self.classes.iter_mut().zip(&mut self.class_components) {
            *components = class.components(intensity);
            class.promise(components, self.step);
        }
        let miss_curve = self.miss_curve_given(&self.class_components);
        self.calibration.decide(self.until, &miss_curve, self.lead);
        // Room is kept for the next burst.
        self.burst = needs;
        self.burst.clear();
    }
    /// What pools of each size would miss at `at`, if it stays as lively as it is.
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
    /// The dearest price that would so far have hit this share of the gangs that were within reach at all.
    pub fn price_for(&self, hit_rate: f64) -> f64 {
        self.calibration.price_for(hit_rate)
    }
    /// The largest pool ever worth having.
    pub const LARGEST: u32 = LEVELS[COUNT - 1];
}
