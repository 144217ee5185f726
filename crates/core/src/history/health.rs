//! The record of an offering: how often it was out of stock, and how long ago.
//!
//! Stock comes and goes in spells of an hour or so. Right after a stock-out the next one is all but certain; hours
//! later only the offering's record counts against it, and that decays too.

use serde::{Deserialize, Serialize};

use crate::units::time::{Span, Time};

/// Half-life of an observation in an offering's record.
const HALF_LIFE: Span = Span::hours(12);
/// How long a spell in or out of stock lasts, as far as the last answer tells: measured outages last from 48 to 215
/// minutes, and a retry after 15 minutes finds one in ten of them over.
const SPELL: Span = Span::hours(1);
/// The prior of an offering without requests: half a stock-out in five requests.
const PRIOR: (f64, f64) = (0.5, 5.0);
/// Answers of the same kind within this time are one answer: an order asks for many nodes at once.
const SAME_ANSWER: Span = Span::mins(1);

/// The failure record of an offering.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Health {
    /// Failures since the last node that came up.
    pub streak: u32,
    /// When the last one was.
    pub last_failure: Option<Time>,
    /// Requests answered, decaying.
    answers: f64,
    /// Of these, those answered with a stock-out.
    outs: f64,
    /// The last answer, and whether it was a stock-out.
    last: Option<(Time, bool)>,
}

/// The part of an offering's record that is worth storing, for the next leader.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Record {
    /// Failures since the last node that came up.
    pub failures: u32,
    /// When the last one was.
    pub last_failure: Option<Time>,
    /// When the provider last answered, if it was out of stock then.
    pub out_since: Option<Time>,
}

/// After how long a record is no longer worth storing: a spell is most likely over then, and failures before it no
/// longer cause back-off.
const REMEMBERED: Span = Span::hours(3);

impl Health {
    /// The record worth storing now.
    pub fn remembered(&self, now: Time) -> Option<Record> {
        let is_new = |at: &Time| now.since(*at) < REMEMBERED;
        let last_failure = self.last_failure.filter(|at| self.streak > 0 && is_new(at));
        let out_since = self.last.filter(|(_, out)| *out).map(|(at, _)| at).filter(is_new);
        let failures = if last_failure.is_some() { self.streak } else { 0 };
        let any = last_failure.is_some() || out_since.is_some();
        any.then_some(Record { failures, last_failure, out_since })
    }

    /// Restores a stored record from before now. Newer observations stay.
    pub(crate) fn restore(&mut self, now: Time, was: Record) {
        let failed = was.last_failure.map(|at| at.min(now)).filter(|_| was.failures > 0);
        if failed > self.last_failure {
            (self.last_failure, self.streak) = (failed, self.streak.max(was.failures));
        }
        let out = was.out_since.map(|at| at.min(now));
        if out > self.last_answer()
            && let Some(at) = out
        {
            self.answered(at, true);
        }
    }

    /// Records whether the provider had a machine.
    pub fn answered(&mut self, now: Time, out: bool) {
        if let Some((at, was_out)) = self.last {
            if was_out == out && now.since(at) < SAME_ANSWER {
                return;
            }
            let faded = 0.5_f64.powf(now.since(at).as_secs_f64() / HALF_LIFE.as_secs_f64());
            self.answers *= faded;
            self.outs *= faded;
        }
        self.answers += 1.0;
        self.outs += f64::from(u8::from(out));
        self.last = Some((now, out));
    }

    /// Records a failure. Several failures at once count as one.
    pub fn failed(&mut self, now: Time) {
        if self.last_failure.is_none_or(|last| now.since(last) >= SAME_ANSWER) {
            self.streak += 1;
        }
        self.last_failure = Some(now);
    }

    /// Whether the provider was out of stock when it last answered.
    pub fn is_out(&self) -> bool {
        self.last.is_some_and(|(_, out)| out)
    }

    /// When the provider last answered.
    pub fn last_answer(&self) -> Option<Time> {
        self.last.map(|(at, _)| at)
    }

    /// The probability that the offering is out of stock now.
    pub fn out_of_stock(&self, now: Time) -> f64 {
        let (faded, recent) = match self.last {
            None => (1.0, 0.0),
            Some((at, _)) => {
                let age = now.since(at).as_secs_f64();
                let faded = 0.5_f64.powf(age / HALF_LIFE.as_secs_f64());
                (faded, (-age / SPELL.as_secs_f64()).exp())
            }
        };
        let usual = (self.outs * faded + PRIOR.0) / (self.answers * faded + PRIOR.1);
        match self.last {
            Some((_, true)) => usual + (1.0 - usual) * recent,
            Some((_, false)) => usual * (1.0 - recent),
            None => usual,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(hours: u64) -> Time {
        Time::ZERO + Span::hours(hours)
    }

    #[test]
    fn stock_out_probability_decays_with_time() {
        let mut health = Health::default();
        let unknown = health.out_of_stock(Time::ZERO);
        health.answered(Time::ZERO, true);
        let odds = [0, 1, 3, 12, 96].map(|hours| health.out_of_stock(after(hours)));
        assert!(odds[0] > 0.99, "{odds:?}");
        assert!(odds.is_sorted_by(|sooner, later| sooner > later), "{odds:?}");
        assert!(odds[4] < unknown + 0.01, "{odds:?}");
    }

    #[test]
    fn delivered_machine_lowers_the_stock_out_probability() {
        let mut health = Health::default();
        for hour in 0..10 {
            health.answered(after(hour), hour % 2 == 0);
        }
        assert!(health.out_of_stock(after(9)) < 0.01);
        // It was out of stock every other time, and is not trusted for long.
        assert!(health.out_of_stock(after(14)) > 0.25);
    }

    #[test]
    fn stored_record_restores_and_newer_observations_stay() {
        let mut seen = Health::default();
        seen.answered(after(1), true);
        seen.failed(after(1));
        let was = seen.remembered(after(2)).expect("it is worth it");
        let mut told = Health::default();
        told.restore(after(2), was);
        assert_eq!(told, seen);
        told.restore(after(2), was);
        assert_eq!(told, seen, "told twice is told once");
        assert_eq!(seen.remembered(after(9)), None, "it says nothing any more");
        // It has delivered a machine since.
        told.answered(after(2), false);
        told.restore(after(2), was);
        assert!(!told.is_out());
        // Clocks of hosts differ.
        let mut early = Health::default();
        early.restore(after(0), was);
        assert_eq!(early.last_failure, Some(after(0)));
        assert_eq!(Health::default().remembered(after(1)), None);
    }

    #[test]
    fn answers_for_many_nodes_at_once_count_as_one() {
        let (mut one, mut many) = (Health::default(), Health::default());
        one.answered(Time::ZERO, true);
        for _ in 0..64 {
            many.answered(Time::ZERO, true);
        }
        assert_eq!(one, many);
    }
}
