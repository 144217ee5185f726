//! Bursts of about the same size: how often they come, and what they look like.
//!
//! Small bursts follow each other; whether a large one follows a small one is another question, and has another
//! answer on every cluster. So bursts fall into bands by the free nodes they needed, and each band learns for
//! itself how far it goes with how lively it is, and how far it excites itself.

use muster_core::time::Span;
use serde::{Deserialize, Serialize};

use crate::level::{COUNT, PerLevel, holding};
use crate::rate_mixture::RateMixture;

/// The largest need of each band but the last: doubling, with the largest bursts taken together because there
/// are too few of them to be told apart.
const BOUNDS: [u32; 6] = [1, 2, 4, 8, 16, 48];
/// How many bands there are.
pub(crate) const CLASSES: usize = BOUNDS.len() + 1;
/// How long a burst makes another of its band more likely, in seconds; and, last, how long it is preferred as a
/// picture of the next.
const SCALES: [f64; 4] = [1_200.0, 10_800.0, 86_400.0, 86_400.0];
/// Always the same rate; half following how lively it is; fully; and three scales of the band's own past.
pub(crate) const COMPONENTS: usize = 6;
/// Credits before anything is seen: mostly "it follows how lively it is". Twenty in all: with fewer, a handful of
/// large bursts teach too much.
const PRIORS: [f64; COMPONENTS] = [5.0, 3.0, 10.0, 0.6, 0.6, 0.8];
/// The older bursts of a band count as two recent ones when the next is pictured.
const OLD_AS_RECENT: f64 = 2.0;

/// One band.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct SizeClass {
    faded: [f64; 3],
    bursts: f64,
    secs: f64,
    mixture: RateMixture,
    /// Gangs by the level they needed, of all bursts; only up to what this band needs.
    gangs: Vec<f64>,
    /// The same, fading.
    recent_gangs: Vec<f64>,
    recent_bursts: f64,
}

/// Which band a burst belongs to whose neediest gang needed this many free nodes.
pub(crate) fn class_of(need: u32) -> usize {
    BOUNDS.partition_point(|&bound| bound < need)
}

/// By how much a burst fades on each scale while `step` passes.
pub(crate) fn fading(step: Span) -> [f64; 4] {
    SCALES.map(|scale| (-step.as_secs_f64() / scale).exp())
}

impl SizeClass {
    /// The band at this place.
    pub(crate) fn new(class: usize) -> Self {
        let levels =
            BOUNDS.get(class).and_then(|&bound| holding(bound)).map_or(COUNT, |top| top + 1);
        Self {
            faded: [0.0; 3],
            bursts: 0.0,
            secs: 0.0,
            mixture: RateMixture::new(&PRIORS),
            gangs: vec![0.0; levels],
            recent_gangs: vec![0.0; levels],
            recent_bursts: 0.0,
        }
    }
    /// What each part says, in bursts per second.
    pub(crate) fn components(&self, intensity: f64) -> [f64; COMPONENTS] {
        let usual = self.bursts / self.secs.max(1.0);
        [
            usual,
            usual * intensity.sqrt(),
            usual * intensity,
            self.faded[0] / SCALES[0],
            self.faded[1] / SCALES[1],
            self.faded[2] / SCALES[2],
        ]
    }
    /// A step passes.
    pub(crate) fn fade(&mut self, step: Span, fading: &[f64; 4]) {
        self.secs += step.as_secs_f64();
        for (faded, fading) in self.faded.iter_mut().zip(fading) {
            *faded *= fading;
        }
        if self.recent_bursts > 0.0 {
            self.recent_bursts *= fading[3];
            self.recent_gangs.iter_mut().for_each(|gangs| *gangs *= fading[3]);
        }
    }
    /// A burst of this band came, its gangs by level, when the parts said `before`.
    pub(crate) fn burst(&mut self, levels: &[usize], before: &[f64; COMPONENTS]) {
        self.mixture.observe(before);
        self.faded.iter_mut().for_each(|faded| *faded += 1.0);
        self.bursts += 1.0;
        self.recent_bursts += 1.0;
        for &level in levels {
            self.gangs[level] += 1.0;
            self.recent_gangs[level] += 1.0;
        }
    }
    /// Holds the parts to what they say now.
    pub(crate) fn promise(&mut self, components: &[f64; COMPONENTS], step: Span) {
        if self.bursts > 0.0 {
            self.mixture.pass(components, step.as_secs_f64());
        }
    }
    /// Adds the gangs per second that this band is expected to bring, by the level they need.
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
