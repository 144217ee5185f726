//! Bursts of about the same size: how often they come, and how many gangs of each need they bring.
//!
//! Small bursts follow each other; whether a large one follows a small one is another question, with another answer on
//! every cluster. So bursts fall into size classes by the free nodes they needed, and each class learns how far its
//! rate follows the overall intensity of bursts and how far it excites itself.

use muster_core::time::Span;
use serde::{Deserialize, Serialize};

use crate::level::{COUNT, PerLevel, holding};
use crate::rate_mixture::RateMixture;

/// The largest need of each class but the last: doubling, with the largest bursts taken together because there are too
/// few of them to be told apart.
const BOUNDS: [u32; 6] = [1, 2, 4, 8, 16, 48];
/// How many size classes there are.
pub(crate) const CLASSES: usize = BOUNDS.len() + 1;
/// How long a burst makes another of its class more likely, in seconds; and, last, how long it is preferred as a
/// sample of the next.
const SCALES: [f64; 4] = [1_200.0, 10_800.0, 86_400.0, 86_400.0];
/// A constant rate; half following the intensity; fully following it; and three scales of the class's own past.
pub(crate) const COMPONENTS: usize = 6;
/// Credits before any observation: mostly "it follows the intensity". Twenty in all: with fewer, a handful of large
/// bursts would shift the weights too far.
const PRIORS: [f64; COMPONENTS] = [5.0, 3.0, 10.0, 0.6, 0.6, 0.8];
/// The older bursts of a class count as two recent ones in the expected composition of the next.
const OLD_AS_RECENT: f64 = 2.0;

/// One size class.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct SizeClass {
    decayed: [f64; 3],
    bursts: f64,
    secs: f64,
    mixture: RateMixture,
    /// Gangs by the level they needed, of all bursts; only up to the largest need of this class.
    gangs: Vec<f64>,
    /// The same, decaying.
    recent_gangs: Vec<f64>,
    recent_bursts: f64,
}

/// The class of a burst whose neediest gang needed this many free nodes.
pub(crate) fn class_of(need: u32) -> usize {
    BOUNDS.partition_point(|&bound| bound < need)
}

/// By how much a burst decays on each scale while `step` passes.
pub(crate) fn decay_factors(step: Span) -> [f64; 4] {
    SCALES.map(|scale| (-step.as_secs_f64() / scale).exp())
}

impl SizeClass {
    /// The class at this index.
    pub(crate) fn new(class: usize) -> Self {
        let levels =
            BOUNDS.get(class).and_then(|&bound| holding(bound)).map_or(COUNT, |top| top + 1);
        Self {
            decayed: [0.0; 3],
            bursts: 0.0,
            secs: 0.0,
            mixture: RateMixture::new(&PRIORS),
            gangs: vec![0.0; levels],
            recent_gangs: vec![0.0; levels],
            recent_bursts: 0.0,
        }
    }
    /// The rate of each component, in bursts per second.
    pub(crate) fn components(&self, intensity: f64) -> [f64; COMPONENTS] {
        let usual = self.bursts / self.secs.max(1.0);
        [
            usual,
            usual * intensity.sqrt(),
            usual * intensity,
            self.decayed[0] / SCALES[0],
            self.decayed[1] / SCALES[1],
            self.decayed[2] / SCALES[2],
        ]
    }
    /// Advances by one step.
    pub(crate) fn decay(&mut self, step: Span, decay_factors: &[f64; 4]) {
        self.secs += step.as_secs_f64();
        for (decayed, factor) in self.decayed.iter_mut().zip(decay_factors) {
            *decayed *= factor;
        }
        if self.recent_bursts > 0.0 {
            self.recent_bursts *= decay_factors[3];
            self.recent_gangs.iter_mut().for_each(|gangs| *gangs *= decay_factors[3]);
        }
    }
    /// Observes a burst of this class, its gangs by level, with the component rates before it.
    pub(crate) fn burst(&mut self, levels: &[usize], before: &[f64; COMPONENTS]) {
        self.mixture.observe(before);
        self.decayed.iter_mut().for_each(|decayed| *decayed += 1.0);
        self.bursts += 1.0;
        self.recent_bursts += 1.0;
        for &level in levels {
            self.gangs[level] += 1.0;
            self.recent_gangs[level] += 1.0;
        }
    }
    /// Holds the components to the rates they give now.
    pub(crate) fn advance(&mut self, components: &[f64; COMPONENTS], step: Span) {
        if self.bursts > 0.0 {
            self.mixture.advance(components, step.as_secs_f64());
        }
    }
    /// Adds the gangs per second that this class is expected to bring, by the level they need.
    pub(crate) fn expect(&self, components: &[f64; COMPONENTS], gangs: &mut PerLevel) {
        if self.bursts == 0.0 {
            return;
        }
        let rate = self.mixture.rate(components);
        let old = rate * OLD_AS_RECENT / self.bursts / (self.recent_bursts + OLD_AS_RECENT);
        let recent = rate / (self.recent_bursts + OLD_AS_RECENT);
        let seen = self.gangs.iter().zip(&self.recent_gangs);
        for (gangs, (all, lately)) in gangs.iter_mut().zip(seen) {
            *gangs += old * all + recent * lately;
        }
    }
}
