//! How well each kind is followed, for metrics and for people who ask.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How well every kind is followed. Clones show the same.
#[derive(Clone, Debug, Default)]
pub struct WatchHealth(Arc<Mutex<BTreeMap<String, KindHealth>>>);

/// How well one kind is followed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KindHealth {
    /// Lists and watches that failed, one after another.
    pub failures_in_a_row: u32,
    /// And all of them since the process has started.
    pub failures: u64,
    /// Lists that were complete.
    pub lists: u64,
    /// Objects that were left out, each time they were seen.
    pub left_out: u64,
    /// What went wrong last.
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
