//! Writes about one thing, one after another.
//!
//! A write that is tried again and again must not land after a later one: a placement would be wiped out by news of the
//! gang's former end, and an order made after it was closed. Each write therefore waits for the one before it.

use std::future::Future;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tokio::task::JoinHandle;

/// Lanes at which those that are free are forgotten.
const SWEEP_AT: usize = 256;

/// The last write about each thing.
#[derive(Debug, Default)]
pub(crate) struct OrderedWrites {
    last: FxHashMap<Arc<str>, JoinHandle<()>>,
    sweep_at: usize,
}

impl OrderedWrites {
    /// Whether a write about it is still under way.
    pub(crate) fn is_busy(&self, of: &str) -> bool {
        self.last.get(of).is_some_and(|last| !last.is_finished())
    }

    /// Writes after everything that was to be written about it before.
    pub(crate) fn write(
        &mut self,
        of: &Arc<str>,
        write: impl Future<Output = ()> + Send + 'static,
    ) {
        let before = self.last.remove(of).filter(|last| !last.is_finished());
        let task = tokio::spawn(async move {
            if let Some(before) = before {
                let _ = before.await;
            }
            write.await;
        });
        self.last.insert(of.clone(), task);
        if self.last.len() > self.sweep_at {
            self.last.retain(|_, last| !last.is_finished());
            self.sweep_at = SWEEP_AT.max(2 * self.last.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::{mpsc, oneshot};

    use crate::effects::ordered::*;

    #[tokio::test]
    async fn a_write_that_takes_long_is_not_overtaken() {
        let (said, mut heard) = mpsc::unbounded_channel();
        let (open, gate) = oneshot::channel::<()>();
        let mut lanes = OrderedWrites::default();
        let slow = said.clone();
        lanes.write(&"a".into(), async move {
            let _ = gate.await;
            let _ = slow.send("a, after long");
        });
        for (of, what) in [("a", "a, at once"), ("b", "b")] {
            let said = said.clone();
            lanes.write(&of.into(), async move {
                let _ = said.send(what);
            });
        }
        assert!(lanes.is_busy("a") && !lanes.is_busy("c"));
        assert_eq!(heard.recv().await, Some("b"));
        open.send(()).expect("somebody waits");
        assert_eq!(heard.recv().await, Some("a, after long"));
        assert_eq!(heard.recv().await, Some("a, at once"));
    }
}
