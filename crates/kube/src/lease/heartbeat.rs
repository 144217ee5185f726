//! The heartbeat of the decision loop: the Lease is renewed only while it beats.
//!
//! A loop that hangs, or a cycle that never ends, must not keep the Lease. The loop beats with every pass; the thread that
//! renews the Lease reads the last beat and stops renewing when it is too old.

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

    /// Beats while it awaits a future: waiting for an answer is no stall, a task that is never polled is.
    pub(crate) async fn beat_while<F: Future>(&self, future: F) -> F::Output {
        tokio::pin!(future);
        loop {
            self.beat();
            tokio::select! {
                biased;
                output = &mut future => return output,
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
        let heartbeat = Heartbeat::default();
        heartbeat.beat_while(tokio::time::sleep(Duration::from_millis(1_500))).await;
        let silent = heartbeat.silent_for();
        assert!(silent < Duration::from_millis(1_200), "{silent:?}");
        let blocks = async { std::thread::sleep(Duration::from_millis(1_300)) };
        heartbeat.beat_while(blocks).await;
        let silent = heartbeat.silent_for();
        assert!(silent >= Duration::from_millis(1_300), "{silent:?}");
    }
}
