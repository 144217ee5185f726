//! A cluster that is watched from before anybody acts until its test is over.

use std::ops::Deref;
use std::sync::Mutex;

use muster_testkit::cluster::{Cluster, Role};

use super::Observer;

/// What was not as promised fails the test at its end, whether or not it asks.
pub(crate) struct Observed {
    observer: Observer,
    excused: Mutex<Vec<&'static str>>,
    cluster: Cluster,
}

impl Observed {
    /// Muster's kinds must be served.
    pub(crate) async fn new(cluster: Cluster) -> Self {
        let observer = Observer::start(cluster.client(Role::Observer).await).await;
        Self { observer, excused: Mutex::default(), cluster }
    }

    pub(crate) fn observer(&self) -> &Observer {
        &self.observer
    }

    /// The test itself brings about what the observer objects to in these words.
    pub(crate) fn excuse(&self, words: &'static str) {
        self.excused.lock().expect("nobody panics with it").push(words);
    }

    /// Panics with everything that was not as promised so far.
    pub(crate) async fn is_as_promised(&self) {
        let mut findings = self.observer.findings().await;
        let excused = self.excused.lock().expect("nobody panics with it").clone();
        findings.retain(|one| !excused.iter().any(|words| one.contains(words)));
        assert!(findings.is_empty(), "not as promised:\n{}", findings.join("\n"));
    }
}

impl Deref for Observed {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}

/// The controller is gone by now, and so is whoever else the test has started: what is left is looked at.
impl Drop for Observed {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let tests = tokio::runtime::Handle::current();
            tokio::task::block_in_place(|| tests.block_on(self.is_as_promised()));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::stage::small_cluster;
    use crate::words::pod;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_test_that_asks_for_nothing_fails_all_the_same() {
        let Some(cluster) = small_cluster(1).await else { return };
        let forgetful = tokio::spawn(async move {
            let large = pod("large", 9, "", "", "nodeName: n0");
            cluster.apply(&large).await.expect("a pod");
        });
        let failed = forgetful.await.expect_err("a node has eight GPUs").into_panic();
        let said = failed.downcast_ref::<String>().expect("words");
        assert!(said.contains("n0 has 8000 thousandths of nvidia.com/gpu and 9000 are taken"));
    }
}
