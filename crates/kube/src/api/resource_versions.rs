//! The newest version that any answer has told, by which an answer from the past is known.
//!
//! The server counts the versions of all kinds together, and a list that is asked for now cannot be older than what was
//! seen before. One that is comes from a server that has fallen behind: taken in, it would undo in memory what was done.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kube::api::{Api, ListParams};

use crate::objects::node::Node;

/// The newest version seen so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResourceVersions(Arc<AtomicU64>);

impl ResourceVersions {
    /// Asks for the newest version there is: before anything was seen, any list would do.
    ///
    /// # Errors
    /// When the server does not answer.
    pub(crate) async fn ask(&self, client: &kube::Client) -> kube::Result<()> {
        let one = Api::<Node>::all(client.clone()).list(&ListParams::default().limit(1)).await?;
        self.saw(one.metadata.resource_version.as_deref().unwrap_or_default());
        Ok(())
    }

    pub(crate) fn saw(&self, version: &str) {
        if let Some(version) = number(version) {
            self.0.fetch_max(version, Ordering::Relaxed);
        }
    }

    /// As it is now, to hold a list against that is asked for next.
    pub(crate) fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Whether a version is older than one by its number. Nothing is said of versions that are none.
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
    fn what_was_seen_once_is_not_forgotten() {
        let newest = ResourceVersions::default();
        assert!(!is_older("1", newest.now()));
        newest.saw("7");
        newest.saw("5");
        newest.saw("none");
        assert!(is_older("6", newest.now()) && !is_older("7", newest.now()));
        assert!(!is_older("none", newest.now()));
    }
}
