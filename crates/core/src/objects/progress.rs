//! Progress of a gang: how much work is left, and how fast it goes with the members it has.
//!
//! Work is measured in the time it takes with every role at its `max`. A gang with fewer members is slower, but not in
//! proportion: members wait for each other, so each further member brings less than the one before.

use serde::{Deserialize, Serialize};

use crate::units::time::{Span, Time};

/// How a gang's speed depends on its members, and what a resize costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Scaling {
    /// What twice the members bring of twice the speed, in thousandths: 1000 when nothing is lost.
    pub efficiency: u16,
    /// How long the gang pauses when its members change.
    pub resize: Span,
}

impl Default for Scaling {
    fn default() -> Self {
        Self { efficiency: 1_000, resize: Span::secs(30) }
    }
}

impl Scaling {
    /// Speed with so many members, as a fraction of the speed with `most`.
    pub fn speed(&self, members: u32, most: u32) -> f64 {
        if members >= most || most == 0 {
            return 1.0;
        }
        let part = f64::from(members) / f64::from(most);
        if self.efficiency >= 1_000 {
            return part;
        }
        // Halving the members divides the speed by twice the efficiency.
        let per_doubling = 2.0 * f64::from(self.efficiency.max(500)) / 1e3;
        part.powf(per_doubling.log2())
    }
}

/// Work done and work left.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// Work left, with every role at its `max`, by the submitter's estimate.
    pub left: Span,
    /// As of when; later than now while the gang pauses.
    pub since: Time,
    /// Work done before that, in this and earlier runs, and not lost.
    pub done: Span,
    /// The part of it that was done before this run.
    pub kept: Span,
}

impl Progress {
    /// No work done yet.
    pub fn new(all: Span) -> Self {
        Self { left: all, ..Self::default() }
    }
    /// Work done by an instant at a speed, in all.
    pub fn done_by(&self, now: Time, speed: f64) -> Span {
        self.done + scaled(now.since(self.since), speed)
    }
    /// Counts the work done up to an instant at a speed, and continues after a pause.
    pub fn go_on(&mut self, now: Time, speed: f64, pause: Span) {
        let did = scaled(now.since(self.since), speed);
        self.done = self.done + did;
        self.left = Span(self.left.0.saturating_sub(did.0));
        // Two pauses at once last as long as the longer one.
        self.since = self.since.max(now + pause).max(now);
    }
    /// Ends this run with only the saved part of it kept.
    pub fn stop(&mut self, now: Time, speed: f64, saved: impl Fn(Span) -> Span) {
        let done = self.done_by(now, speed);
        let kept = self.kept + saved(Span(done.0 - self.kept.0));
        let all = self.done + self.left;
        *self = Self { left: Span(all.0.saturating_sub(kept.0)), since: now, done: kept, kept };
    }
}

/// A span at a speed.
pub fn scaled(span: Span, speed: f64) -> Span {
    if speed == 1.0 { span } else { Span((span.0 as f64 * speed).round() as u64) }
}

/// How long something takes at a speed.
pub fn stretched(span: Span, speed: f64) -> Span {
    if speed == 1.0 { span } else { Span((span.0 as f64 / speed.max(1e-9)).ceil() as u64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_falls_less_than_proportionally_with_members() {
        let linear = Scaling::default();
        assert!((linear.speed(4, 8) - 0.5).abs() < 1e-12);
        let waits = Scaling { efficiency: 800, ..linear };
        assert!((waits.speed(4, 8) - 1.0 / 1.6).abs() < 1e-12);
        assert!((waits.speed(2, 8) - 1.0 / 2.56).abs() < 1e-12);
        assert_eq!(waits.speed(8, 8), 1.0);
        // Efficiency below one half would mean that members slow each other down; they bring nothing then.
        let none = Scaling { efficiency: 100, ..linear };
        assert_eq!(none.speed(1, 8), 1.0);
    }

    #[test]
    fn done_plus_left_stays_constant_when_resumed() {
        let mut work = Progress::new(Span::mins(60));
        work.since = Time(0);
        work.go_on(Time::ZERO + Span::mins(20), 0.5, Span::mins(1));
        assert_eq!((work.done, work.left), (Span::mins(10), Span::mins(50)));
        assert_eq!(work.since, Time::ZERO + Span::mins(21));
        work.stop(Time::ZERO + Span::mins(41), 1.0, |_| Span::mins(15));
        assert_eq!((work.done, work.left), (Span::mins(15), Span::mins(45)));
    }
}
