//! Time since the machine booted, counted through suspend.
//!
//! `Instant` stops while a machine is suspended, so after an hour of suspend a leader would find its Lease almost as young
//! as before. Leases are compared on this clock instead; deadlines of ordinary work stay on `Instant`.

use std::time::Duration;

use muster_clock::since_boot;

/// A moment on the boot-time clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct BootTime(Duration);

impl BootTime {
    pub(crate) fn now() -> Self {
        Self(since_boot())
    }

    /// The moment this long after; the latest moment on overflow.
    pub(crate) fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }

    /// The time since an earlier moment; zero when it was later.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    pub(crate) fn as_millis(self) -> u64 {
        u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX)
    }

    pub(crate) fn from_millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }
}
