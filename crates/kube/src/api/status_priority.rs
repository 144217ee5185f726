//! Deeds go before words.
//!
//! That a gang runs can be read a moment later; that its neighbours' pods are bound is what somebody waits for. So what is
//! only told waits while requests are under way, and for ten seconds at most.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// How long words wait for deeds, at most.
pub(crate) const MOST: Duration = Duration::from_secs(10);

/// Requests that are under way, or wait for their turn.
#[derive(Debug, Default)]
pub(crate) struct StatusPriority {
    under_way: AtomicUsize,
    quiet: Notify,
}

/// One request, for as long as it lives.
pub(crate) struct Deed(Arc<StatusPriority>);

impl StatusPriority {
    pub(crate) fn begin(self: &Arc<Self>) -> Deed {
        self.under_way.fetch_add(1, Ordering::AcqRel);
        Deed(self.clone())
    }

    /// Until nothing is under way, or it has taken too long.
    pub(crate) async fn quiet(&self, most: Duration) {
        let quiet = async {
            loop {
                let told = self.quiet.notified();
                if self.under_way.load(Ordering::Acquire) == 0 {
                    return;
                }
                told.await;
            }
        };
        let _ = tokio::time::timeout(most, quiet).await;
    }
}

impl Drop for Deed {
    fn drop(&mut self) {
        if self.0.under_way.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.quiet.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::api::status_priority::*;

    #[tokio::test]
    async fn words_wait_for_the_last_deed_and_not_for_ever() {
        let haste = Arc::new(StatusPriority::default());
        haste.quiet(Duration::MAX).await; // nothing is under way
        let (one, other) = (haste.begin(), haste.begin());
        let waits = tokio::spawn({
            let haste = haste.clone();
            async move { haste.quiet(Duration::MAX).await }
        });
        tokio::task::yield_now().await;
        drop(one);
        tokio::task::yield_now().await;
        assert!(!waits.is_finished());
        drop(other);
        waits.await.expect("it is over");
        let _endless = haste.begin();
        haste.quiet(Duration::from_millis(1)).await;
    }
}
