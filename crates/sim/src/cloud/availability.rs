//! Recorded availability: the number of available machines over time.

use muster_core::time::{Span, Time};

/// Available machines over time, in steps of equal length. Past its end a record starts over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Availability {
    step: Span,
    counts: Vec<u32>,
}

impl Availability {
    /// A record; `None` when it has no steps, or steps without length.
    pub fn new(step: Span, counts: Vec<u32>) -> Option<Self> {
        (step > Span::ZERO && !counts.is_empty()).then_some(Self { step, counts })
    }
    /// Available machines at this time.
    pub fn at(&self, now: Time) -> u32 {
        self.counts[self.place(self.step_of(now))]
    }
    /// Its length, after which it starts over.
    pub fn length(&self) -> Span {
        self.step.saturating_mul(self.counts.len() as u64)
    }
    /// When, after `now`, fewer than `count` are available for the first time; `None` when never.
    pub fn next_below(&self, now: Time, count: u32) -> Option<Time> {
        let first = self.step_of(now) + 1;
        let steps = first..first + self.counts.len() as u64;
        let below = |step: &u64| self.counts[self.place(*step)] < count;
        steps.into_iter().find(below).map(|step| Time::ZERO + self.step.saturating_mul(step))
    }

    fn step_of(&self, now: Time) -> u64 {
        now.since(Time::ZERO).0 / self.step.0
    }
    fn place(&self, step: u64) -> usize {
        (step % self.counts.len() as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_holds_for_a_step_and_starts_over_at_its_end() {
        let record = Availability::new(Span::secs(10), vec![2, 0, 5]).unwrap();
        let at = |secs| record.at(Time::ZERO + Span::secs(secs));
        assert_eq!([0, 9, 10, 19, 20, 29, 30, 40, 300].map(at), [2, 2, 0, 0, 5, 5, 2, 0, 2]);
        assert_eq!(record.length(), Span::secs(30));
    }

    #[test]
    fn next_drop_is_found_also_beyond_the_end() {
        let record = Availability::new(Span::secs(10), vec![2, 4, 5]).unwrap();
        let next = |secs, count| record.next_below(Time::ZERO + Span::secs(secs), count);
        assert_eq!(next(0, 5), Some(Time(10_000)));
        assert_eq!(next(25, 3), Some(Time(30_000)));
        assert_eq!(next(30, 3), Some(Time(60_000)));
        assert_eq!(next(0, 2), None);
    }

    #[test]
    fn record_without_steps_is_refused() {
        assert_eq!(Availability::new(Span::secs(10), Vec::new()), None);
        assert_eq!(Availability::new(Span::ZERO, vec![1]), None);
    }
}
