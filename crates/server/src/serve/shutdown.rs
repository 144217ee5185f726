//! How streams learn that the server ends. Without it they would hold it open for ever.

use tokio::sync::watch;

/// Says, once and for all, that it is over. Clones say it to each other.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Sender<bool>);

impl Default for Shutdown {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Shutdown {
    /// Every stream ends now, and new ones end at once.
    pub fn begin(&self) {
        self.0.send_replace(true);
    }

    /// Somebody to be told.
    pub(crate) fn subscribe(&self) -> ShutdownSignal {
        ShutdownSignal(self.0.subscribe())
    }
}

/// Somebody who is told when it is over.
#[derive(Debug)]
pub(crate) struct ShutdownSignal(watch::Receiver<bool>);

impl ShutdownSignal {
    /// Waits until it is over. Whoever could say so being gone counts as being told.
    pub(crate) async fn wait(&mut self) {
        let _ = self.0.wait_for(|over| *over).await;
    }
}
