//! What time it is for the World, by the clock that both hosts share.

use std::time::Duration;

use muster_clock::SteadyClock;
use muster_core::time::Time;

/// How long the wall clock must tell another time before it is believed.
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

    /// Whether the wall clock has told another time for so long that everything is to be counted anew by it.
    pub(crate) fn is_wrong(&mut self) -> bool {
        self.0.is_wrong()
    }
}
