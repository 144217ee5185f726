//! The health of the watch of each kind, for metrics.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The health of all watches. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct WatchHealth(Arc<Mutex<BTreeMap<String, KindHealth>>>);

/// The health of the watch of one kind.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KindHealth {
    /// Consecutive failures of lists and watches.
    pub failures_in_a_row: u32,
    /// All failures since the process started.
    pub failures: u64,
    /// Complete lists.
    pub lists: u64,
    /// Omitted objects, counted each time they were observed.
    pub left_out: u64,
    /// The last failure.
    pub last_error: Option<String>,
}

impl WatchHealth {
    /// All kinds, by the URL at which they are served.
    pub fn kinds(&self) -> BTreeMap<String, KindHealth> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn note(&self, kind: &str, note: impl FnOnce(&mut KindHealth)) -> KindHealth {
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let health = kinds.entry(kind.to_owned()).or_default();
        note(health);
        health.clone()
    }
}
