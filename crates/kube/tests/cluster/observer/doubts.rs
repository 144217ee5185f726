//! What looks wrong and may be so only because news of one kind of objects came before news of another.

use std::time::{Duration, Instant};

use jiff::Timestamp;

/// How long news of one kind may take longer than news of another.
pub(super) const LATE: Duration = Duration::from_secs(3);

/// An instant, by the clock that measures and by the one that servers write down.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    pub(super) tick: Instant,
    pub(super) stamp: Timestamp,
}

impl Moment {
    pub(super) fn now() -> Self {
        Self { tick: Instant::now(), stamp: Timestamp::now() }
    }
}

/// Doubts of one sort, and since when there are.
pub(super) struct Doubts<T>(Vec<(Moment, T)>);

impl<T> Default for Doubts<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Doubts<T> {
    pub(super) fn add(&mut self, now: Moment, doubt: T) {
        self.0.push((now, doubt));
    }

    /// Drops doubts to which there is no objection any more. Those that are old enough to stay are findings.
    pub(super) fn settle(
        &mut self,
        now: Moment,
        objection: impl Fn(Moment, &T) -> Option<String>,
    ) -> Vec<String> {
        let mut broken = Vec::new();
        self.0.retain(|(since, doubt)| {
            let Some(objection) = objection(*since, doubt) else { return false };
            let is_open = now.tick - since.tick <= LATE;
            if !is_open {
                broken.push(objection);
            }
            is_open
        });
        broken
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
