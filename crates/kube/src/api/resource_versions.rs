//! The newest observed resource version, against which stale lists are detected.
//!
//! The API server counts the versions of all kinds together, so a list that is requested now cannot be older than an
//! observed object. If it is, it comes from a server that has fallen behind, and would undo in memory what was written.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kube::api::{Api, ListParams};

use crate::objects::node::Node;

/// The newest observed resource version.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResourceVersions(Arc<AtomicU64>);

impl ResourceVersions {
    /// Reads the current version: before anything was observed, a stale list could not be detected.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub(crate) async fn read_current(&self, client: &kube::Client) -> kube::Result<()> {
        let one = Api::<Node>::all(client.clone()).list(&ListParams::default().limit(1)).await?;
        self.observe(one.metadata.resource_version.as_deref().unwrap_or_default());
        Ok(())
    }

    pub(crate) fn observe(&self, version: &str) {
        if let Some(version) = number(version) {
            self.0.fetch_max(version, Ordering::Relaxed);
        }
    }

    /// The newest version so far, which a list that is requested next must not be older than.
    pub(crate) fn current(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Whether a version is older than another. A version that is no number is never older.
pub(crate) fn is_older(version: &str, than: u64) -> bool {
    number(version).is_some_and(|version| version < than)
}

fn number(version: &str) -> Option<u64> {
    version.parse().ok()
}

#[cfg(test)]
mod tests {
    use crate::api::resource_versions::*;

    #[test]
    fn newest_version_never_decreases() {
        let newest = ResourceVersions::default();
        assert!(!is_older("1", newest.current()));
        newest.observe("7");
        newest.observe("5");
        newest.observe("none");
        assert!(is_older("6", newest.current()) && !is_older("7", newest.current()));
        assert!(!is_older("none", newest.current()));
    }
}
