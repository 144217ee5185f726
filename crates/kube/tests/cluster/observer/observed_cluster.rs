//! A cluster that is observed from its start until its test is over.

use std::ops::Deref;
use std::sync::Mutex;

use muster_testkit::cluster::{Cluster, Role};

use super::Observer;

/// A broken promise fails the test at its end, whether or not the test checks.
pub(crate) struct ObservedCluster {
    observer: Observer,
    excused: Mutex<Vec<&'static str>>,
    cluster: Cluster,
}

impl ObservedCluster {
    /// Starts the observer. Muster's CRDs must be served.
    pub(crate) async fn new(cluster: Cluster) -> Self {
        let observer = Observer::start(cluster.client(Role::Observer).await).await;
        Self { observer, excused: Mutex::default(), cluster }
    }

    pub(crate) fn observer(&self) -> &Observer {
        &self.observer
    }

    /// The test itself breaks the promise whose finding contains this text.
    pub(crate) fn allow_violation(&self, words: &'static str) {
        self.excused.lock().expect("no holder panics").push(words);
    }

    /// Panics with every broken promise so far.
    pub(crate) async fn assert_promises_kept(&self) {
        let mut findings = self.observer.findings().await;
        let excused = self.excused.lock().expect("no holder panics").clone();
        findings.retain(|one| !excused.iter().any(|words| one.contains(words)));
        assert!(findings.is_empty(), "broken promises:\n{}", findings.join("\n"));
    }
}

impl Deref for ObservedCluster {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}

/// The controller and all other processes of the test have ended by now: the remaining state is checked.
impl Drop for ObservedCluster {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let tests = tokio::runtime::Handle::current();
            tokio::task::block_in_place(|| tests.block_on(self.assert_promises_kept()));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::clusters::kwok_cluster;
    use crate::fixture::manifests::pod;

    #[tokio::test(flavor = "multi_thread")]
    async fn violation_fails_a_test_that_checks_nothing() {
        let Some(cluster) = kwok_cluster(1).await else { return };
        let forgetful = tokio::spawn(async move {
            let large = pod("large", 9, "", "", "nodeName: n0");
            cluster.apply(&large).await.expect("a pod");
        });
        let failed = forgetful.await.expect_err("a node has eight GPUs").into_panic();
        let message = failed.downcast_ref::<String>().expect("words");
        assert!(message.contains("n0 has 8000 thousandths of nvidia.com/gpu and 9000 are taken"));
    }
}
