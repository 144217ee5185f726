//! How streams learn that the server ends. Without it they would hold it open for ever.

use tokio::sync::watch;

/// Says, once and for all, that it is over. Clones say it to each other.
#[derive(Clone, Debug)]
pub struct Ending(watch::Sender<bool>);

impl Default for Ending {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Ending {
    /// Every stream ends now, and new ones end at once.
    pub fn begin(&self) {
        self.0.send_replace(true);
    }

    /// Somebody to be told.
    pub(crate) fn told(&self) -> Told {
        Told(self.0.subscribe())
    }
}

/// Somebody who is told when it is over.
#[derive(Debug)]
pub(crate) struct Told(watch::Receiver<bool>);

impl Told {
    /// Waits until it is over. Whoever could say so being gone counts as being told.
    pub(crate) async fn over(&mut self) {
        let _ = self.0.wait_for(|over| *over).await;
    }
}
