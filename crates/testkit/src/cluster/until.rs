//! Waits for a condition.

use std::time::Duration;

use crate::cluster::Cluster;
use crate::cluster::process::running::Ended;

/// Generous: the machine may be busy. A test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(180);

impl Cluster {
    /// Polls until there is a value.
    ///
    /// # Panics
    /// If that takes too long, or if a program of the cluster ends meanwhile. The logs are printed then.
    pub async fn until<T>(&self, what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
        let looking = async {
            loop {
                if let Some(seen) = look().await {
                    return seen;
                }
                if let Some(Ended { tool, log }) = self.running.ended() {
                    panic!("{tool} ended while a test waited until {what}\n{log}");
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        match tokio::time::timeout(PATIENCE, looking).await {
            Ok(seen) => seen,
            Err(_) => panic!("waited {PATIENCE:?} in vain until {what}"),
        }
    }
}
