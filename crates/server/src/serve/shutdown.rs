//! Signals shutdown to streams, which would otherwise keep the server open for ever.

use tokio::sync::watch;

/// The shutdown switch; all clones share it.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Sender<bool>);

impl Default for Shutdown {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Shutdown {
    /// Ends all streams now; new streams end at once.
    pub fn begin(&self) {
        self.0.send_replace(true);
    }

    /// A receiver of the signal.
    pub(crate) fn subscribe(&self) -> ShutdownSignal {
        ShutdownSignal(self.0.subscribe())
    }
}

/// A receiver of the shutdown signal.
#[derive(Debug)]
pub(crate) struct ShutdownSignal(watch::Receiver<bool>);

impl ShutdownSignal {
    /// Waits for shutdown. A dropped sender counts as shutdown.
    pub(crate) async fn wait(&mut self) {
        let _ = self.0.wait_for(|over| *over).await;
    }
}
