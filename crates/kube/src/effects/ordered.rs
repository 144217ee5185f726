//! Writes of one object in order: each write waits for the one before it.
//!
//! A write that is retried must not land after a later one: the status of a gang's former end would overwrite its
//! placement, and an order would be created after it was closed.

use std::future::Future;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tokio::task::JoinHandle;

/// Number of keys at which those without a pending write are dropped.
const SWEEP_AT: usize = 256;

/// The last write of each key.
#[derive(Debug, Default)]
pub(crate) struct OrderedWrites {
    last: FxHashMap<Arc<str>, JoinHandle<()>>,
    sweep_at: usize,
}

impl OrderedWrites {
    /// Whether a write of a key is still under way.
    pub(crate) fn is_busy(&self, key: &str) -> bool {
        self.last.get(key).is_some_and(|last| !last.is_finished())
    }

    /// Runs a write after all earlier writes of the same key.
    pub(crate) fn write(
        &mut self,
        key: &Arc<str>,
        write: impl Future<Output = ()> + Send + 'static,
    ) {
        let before = self.last.remove(key).filter(|last| !last.is_finished());
        let task = tokio::spawn(async move {
            if let Some(before) = before {
                let _ = before.await;
            }
            write.await;
        });
        self.last.insert(key.clone(), task);
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
    async fn slow_write_is_not_overtaken_by_later_write_of_same_key() {
        let (done, mut order) = mpsc::unbounded_channel();
        let (open, gate) = oneshot::channel::<()>();
        let mut writes = OrderedWrites::default();
        let slow = done.clone();
        writes.write(&"a".into(), async move {
            let _ = gate.await;
            let _ = slow.send("a, after long");
        });
        for (of, what) in [("a", "a, at once"), ("b", "b")] {
            let done = done.clone();
            writes.write(&of.into(), async move {
                let _ = done.send(what);
            });
        }
        assert!(writes.is_busy("a") && !writes.is_busy("c"));
        assert_eq!(order.recv().await, Some("b"));
        open.send(()).expect("the write waits");
        assert_eq!(order.recv().await, Some("a, after long"));
        assert_eq!(order.recv().await, Some("a, at once"));
    }
}
