//! The heartbeat of the decision loop: the lease is renewed only while it beats.
//!
//! A loop that hangs, or one pass that takes for ever, must not keep the lease. The loop beats with every pass; the
//! thread that renews the lease reads the beat and stops renewing when it is too old.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::lease::boot_clock::BootTime;

/// How often the loop beats while it waits for the API server.
const TICK: Duration = Duration::from_secs(1);

/// When the decision loop last made progress.
#[derive(Clone, Debug)]
pub(crate) struct Heartbeat(Arc<AtomicU64>);

impl Default for Heartbeat {
    fn default() -> Self {
        Self(Arc::new(AtomicU64::new(BootTime::now().as_millis())))
    }
}

impl Heartbeat {
    /// The loop made progress.
    pub(crate) fn beat(&self) {
        self.0.store(BootTime::now().as_millis(), Ordering::Release);
    }

    /// How long the loop has made no progress.
    pub(crate) fn silent_for(&self) -> Duration {
        BootTime::now().since(BootTime::from_millis(self.0.load(Ordering::Acquire)))
    }

    /// Beats while a future is waited for: waiting for an answer is no stall, a task that is never polled is.
    pub(crate) async fn keep<F: Future>(&self, waited: F) -> F::Output {
        tokio::pin!(waited);
        loop {
            self.beat();
            tokio::select! {
                biased;
                output = &mut waited => return output,
                () = tokio::time::sleep(TICK) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::lease::heartbeat::*;

    #[tokio::test]
    async fn waiting_beats_and_blocking_does_not() {
        let pulse = Heartbeat::default();
        pulse.keep(tokio::time::sleep(Duration::from_millis(1_500))).await;
        assert!(pulse.silent_for() < Duration::from_millis(1_200), "{:?}", pulse.silent_for());
        let blocks = async { std::thread::sleep(Duration::from_millis(1_300)) };
        pulse.keep(blocks).await;
        assert!(pulse.silent_for() >= Duration::from_millis(1_300), "{:?}", pulse.silent_for());
    }
}
