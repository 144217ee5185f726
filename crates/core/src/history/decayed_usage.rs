//! Decayed usage: the average usage of a queue over time, with a half-life.
//!
//! After one half-life, earlier usage counts half. It is kept as an average, so that it can be compared with present
//! usage: a queue that always held four GPUs has an average of four GPUs.

use smallvec::SmallVec;

use crate::hardware::resource::ResourceNames;
use crate::history::remembered::PastUse;
use crate::id::{Id, ResourceIdx};
use crate::objects::queue::Usage;
use crate::units::time::{Span, Time};

/// Average usage of one queue.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DecayedUsage {
    at: Time,
    gpu_milli: f64,
    amounts: SmallVec<[f64; 4]>,
}

impl DecayedUsage {
    /// Average GPUs, in thousandths of a device.
    pub fn gpu_milli(&self) -> f64 {
        self.gpu_milli
    }
    /// Average of one other resource.
    pub fn amount(&self, resource: ResourceIdx) -> f64 {
        self.amounts.get(resource.index()).copied().unwrap_or(0.0)
    }
    /// The average at a later time, if `usage` was held since.
    pub fn later(&self, usage: &Usage, half_life: Span, now: Time) -> DecayedUsage {
        let mut later = self.clone();
        later.settle(usage, half_life, now);
        later
    }
    /// The averages by name, rounded.
    pub(crate) fn named(&self, names: &ResourceNames) -> PastUse {
        let rounded = |average: f64| average.round().max(0.0) as u64;
        let amounts = self.amounts.iter().enumerate().filter(|(_, average)| rounded(**average) > 0);
        let amounts = amounts.map(|(at, average)| {
            (names.name(ResourceIdx::from_index(at)).into(), rounded(*average))
        });
        PastUse { gpu_milli: rounded(self.gpu_milli), amounts: amounts.collect() }
    }
    /// Averages as they were at an instant, by name.
    pub(crate) fn from_named(past: &PastUse, at: Time, names: &mut ResourceNames) -> Self {
        let mut amounts: SmallVec<[f64; 4]> = SmallVec::new();
        for (name, amount) in &past.amounts {
            let resource = names.intern(name).index();
            amounts.resize(amounts.len().max(resource + 1), 0.0);
            amounts[resource] = *amount as f64;
        }
        Self { at, gpu_milli: past.gpu_milli as f64, amounts }
    }
    /// Advances to now, with `usage` held since. Without a half-life nothing is kept.
    pub(crate) fn settle(&mut self, usage: &Usage, half_life: Span, now: Time) {
        let passed = now.since(self.at);
        self.at = self.at.max(now);
        if half_life == Span::ZERO {
            (self.gpu_milli, self.amounts) = (0.0, SmallVec::new());
            return;
        }
        if passed == Span::ZERO {
            return;
        }
        let kept = (-(passed.as_secs_f64() / half_life.as_secs_f64())).exp2();
        let blend = |average: f64, held: u64| average * kept + held as f64 * (1.0 - kept);
        self.gpu_milli = blend(self.gpu_milli, usage.gpu_milli);
        let longest = self.amounts.len().max(usage.amounts.len());
        self.amounts.resize(longest, 0.0);
        for (i, average) in self.amounts.iter_mut().enumerate() {
            *average = blend(*average, usage.amounts.get(ResourceIdx::from_index(i)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_counts_half_after_a_half_life() {
        let (day, held) = (Span::hours(24), Usage { gpu_milli: 8_000, ..Usage::default() });
        let mut past = DecayedUsage::default();
        past.settle(&held, day, Time::ZERO + day);
        assert!((past.gpu_milli() - 4_000.0).abs() < 1e-6, "half of it after one day");
        let idle = past.later(&Usage::default(), day, Time::ZERO + day.saturating_mul(2));
        assert!((idle.gpu_milli() - 2_000.0).abs() < 1e-6, "and half of that after an idle day");
        past.settle(&held, Span::ZERO, Time::ZERO + day);
        assert_eq!(past.gpu_milli(), 0.0, "nothing is kept without a half-life");
    }
}
