//! What was learnt from the gangs that came so far, kept so that each gang is looked at once.
//!
//! Time goes in steps. The gangs of one step are one *burst*: what matters is that they came together. A gang is
//! remembered by its need, the nodes that had to be free for it, so what is learnt is how often pools of which
//! size are found wanting. See `docs/forecast.md` for what was tried and measured.

use muster_core::time::{Span, Time};
use serde::{Deserialize, Serialize};

use crate::arrival::{Arrival, LeadWindow};
use crate::band::{self, BANDS, Band, band_of};
use crate::gauge::Gauge;
use crate::level::{COUNT, LEVELS, PerLevel, holding};
use crate::misses::Misses;
use crate::pulse::{self, Pulse};

/// No price is judged by the first day: what it would have done then was guessed from nothing.
const UNJUDGED: Span = Span::hours(24);

/// All that is known about demand that comes in bursts. Same arrivals, same memory.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Memory {
    since: Time,
    until: Time,
    lead: Span,
    step: Span,
    window: LeadWindow,
    /// Needs of the gangs since the last step.
    burst: Vec<u32>,
    pulse: Pulse,
    bands: Vec<Band>,
    gauge: Gauge,
    /// What the parts said at the last step.
    pulse_parts: [f64; pulse::PARTS],
    band_parts: [[f64; band::PARTS]; BANDS],
}

impl Memory {
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
            pulse: Pulse::new(season),
            bands: (0..BANDS).map(Band::new).collect(),
            gauge: Gauge::new(),
            pulse_parts: [0.0; pulse::PARTS],
            band_parts: [[0.0; band::PARTS]; BANDS],
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
        let fading = (Pulse::fading(self.step), band::fading(self.step));
        for arrival in arrivals {
            let at = arrival.at.clamp(self.until, now.max(self.until));
            while self.until + self.step < at {
                self.pass(&fading);
            }
            let need = self.window.need(Arrival { at, ..*arrival }, self.lead);
            if at.since(self.since) > UNJUDGED {
                self.gauge.judge(at, need, self.lead);
            }
            self.burst.push(need);
        }
        while self.until + self.step <= now {
            self.pass(&fading);
        }
    }
    fn pass(&mut self, (pulse_fading, band_fading): &([f64; 6], [f64; 4])) {
        self.until += self.step;
        let needs = std::mem::take(&mut self.burst);
        let neediest = needs.iter().copied().max().unwrap_or(0);
        let burst = (neediest > 0).then_some(&self.pulse_parts);
        let pulse_parts = self.pulse.pass(self.until, self.step, pulse_fading, burst);
        for band in &mut self.bands {
            band.fade(self.step, band_fading);
        }
        if neediest > 0 {
            // Who needs none is hit anyway, and no pool holds those who need more than the last level.
            let levels: Vec<usize> =
                needs.iter().filter(|&&need| need > 0).filter_map(|&need| holding(need)).collect();
            let band = band_of(neediest);
            self.bands[band].burst(&levels, &self.band_parts[band]);
        }
        self.pulse_parts = pulse_parts;
        let liveliness = self.pulse.liveliness(&pulse_parts);
        for (band, parts) in self.bands.iter_mut().zip(&mut self.band_parts) {
            *parts = band.parts(liveliness);
            band.promise(parts, self.step);
        }
        let misses = self.misses_given(&self.band_parts);
        self.gauge.decide(self.until, &misses, self.lead);
        // Room is kept for the next burst.
        self.burst = needs;
        self.burst.clear();
    }
    /// What pools of each size would miss at `at`, if it stays as lively as it is.
    fn misses(&self, at: Time) -> Misses {
        let liveliness = self.pulse.liveliness(&self.pulse.parts(at));
        self.misses_given(&std::array::from_fn(|band| self.bands[band].parts(liveliness)))
    }
    fn misses_given(&self, parts: &[[f64; band::PARTS]; BANDS]) -> Misses {
        let mut gangs: PerLevel = [0.0; COUNT];
        for (band, parts) in self.bands.iter().zip(parts) {
            band.expect(parts, &mut gangs);
        }
        Misses::of(&gangs)
    }
    /// The pool size at which one free node more would not be worth `price`, in gangs missed per second, for a
    /// node.
    pub fn worth(&self, at: Time, price: f64) -> u32 {
        self.misses(at).worth(price)
    }
    /// The dearest price that would so far have hit this share of the gangs that were within reach at all.
    pub fn price_for(&self, hit_rate: f64) -> f64 {
        self.gauge.price_for(hit_rate)
    }
    /// The largest pool ever worth having.
    pub const LARGEST: u32 = LEVELS[COUNT - 1];
}
