//! Suspected violations, which may only look so because events of different kinds arrive in any order.

use std::time::{Duration, Instant};

use jiff::Timestamp;

/// How much later an event of one kind may arrive than one of another.
pub(crate) const LATE: Duration = Duration::from_secs(3);

/// An instant, by the monotonic clock and by the wall clock of timestamps.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) tick: Instant,
    pub(crate) stamp: Timestamp,
}

impl Moment {
    pub(crate) fn now() -> Self {
        Self { tick: Instant::now(), stamp: Timestamp::now() }
    }
}

/// Suspicions of one promise, each with its instant.
pub(crate) struct Suspected<T>(Vec<(Moment, T)>);

impl<T> Default for Suspected<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Suspected<T> {
    pub(crate) fn add(&mut self, now: Moment, suspicion: T) {
        self.0.push((now, suspicion));
    }

    /// Drops suspicions without an objection. An objection that stays for longer than [`LATE`] is a finding.
    pub(crate) fn settle(
        &mut self,
        now: Moment,
        objection: impl Fn(Moment, &T) -> Option<String>,
    ) -> Vec<String> {
        let mut broken = Vec::new();
        self.0.retain(|(since, suspicion)| {
            let Some(objection) = objection(*since, suspicion) else { return false };
            let is_open = now.tick - since.tick <= LATE;
            if !is_open {
                broken.push(objection);
            }
            is_open
        });
        broken
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
