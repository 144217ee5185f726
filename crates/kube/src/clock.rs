//! The clock of the World, which both hosts share.

use std::time::Duration;

use muster_clock::SteadyClock;
use muster_core::time::Time;

/// How long the wall clock must deviate before the deviation is taken as a correction.
const BELIEVED_AFTER: Duration = Duration::from_secs(60);

/// The host's clock.
#[derive(Debug)]
pub(crate) struct Clock(SteadyClock);

impl Clock {
    pub(crate) fn new() -> Self {
        Self(SteadyClock::new(BELIEVED_AFTER))
    }

    /// Unix time.
    pub(crate) fn now(&self) -> Time {
        self.0.now()
    }

    /// Whether the wall clock was corrected, so that the World must be rebuilt with the new time.
    pub(crate) fn is_wrong(&mut self) -> bool {
        self.0.is_wrong()
    }
}
