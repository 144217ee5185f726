//! Status writes yield to bindings, for at most ten seconds.
//!
//! A status that says that a gang runs can be read a moment later; the pods of other gangs wait for their bindings. So
//! status writes and Events wait while other requests are in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// The longest that a status write yields.
pub(crate) const YIELD_MAX: Duration = Duration::from_secs(10);

/// Counts requests that are in flight, or wait for a slot.
#[derive(Debug, Default)]
pub(crate) struct StatusPriority {
    in_flight: AtomicUsize,
    idle: Notify,
}

/// Counts one request until it is dropped.
pub(crate) struct RequestGuard(Arc<StatusPriority>);

impl StatusPriority {
    pub(crate) fn begin_request(self: &Arc<Self>) -> RequestGuard {
        self.in_flight.fetch_add(1, Ordering::AcqRel);
        RequestGuard(self.clone())
    }

    /// Waits until no request is in flight, or the timeout has passed.
    pub(crate) async fn wait_until_idle(&self, timeout: Duration) {
        let idle = async {
            loop {
                let notified = self.idle.notified();
                if self.in_flight.load(Ordering::Acquire) == 0 {
                    return;
                }
                notified.await;
            }
        };
        let _ = tokio::time::timeout(timeout, idle).await;
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        if self.0.in_flight.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.idle.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::api::status_priority::*;

    #[tokio::test]
    async fn status_writes_wait_for_the_last_request_or_the_timeout() {
        let priority = Arc::new(StatusPriority::default());
        priority.wait_until_idle(Duration::MAX).await; // no request is in flight
        let (one, other) = (priority.begin_request(), priority.begin_request());
        let waits = tokio::spawn({
            let priority = priority.clone();
            async move { priority.wait_until_idle(Duration::MAX).await }
        });
        tokio::task::yield_now().await;
        drop(one);
        tokio::task::yield_now().await;
        assert!(!waits.is_finished());
        drop(other);
        waits.await.expect("the wait ends");
        let _endless = priority.begin_request();
        priority.wait_until_idle(Duration::from_millis(1)).await;
    }
}
