//! Restarts a control plane after write failures: when the database cannot be written, uncommitted state is dropped,
//! everything published stays readable, and the control plane restarts from the database once it can be written.

use std::time::Duration;

use muster_server::Refused;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use crate::daemon::inputs::Input;
use crate::daemon::state::{Daemon, Ended, Shared, Watcher};
use crate::store::database::StoreError;
use crate::{Options, StartError};

/// Delay before the database is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// What a control plane is started with, each time.
pub(crate) struct RestartLoop {
    pub(crate) options: Options,
    pub(crate) shared: Shared,
    pub(crate) inputs: UnboundedSender<Input>,
    pub(crate) runtime: tokio::runtime::Handle,
}

impl RestartLoop {
    /// Starts the control plane from the data directory.
    pub(crate) fn start(&self, watchers: Vec<Watcher>) -> Result<Daemon, StartError> {
        self.shared.disk.release_reserve_if_full();
        let (inputs, runtime) = (self.inputs.clone(), self.runtime.clone());
        let daemon =
            Daemon::recover(&self.options, watchers, self.shared.clone(), inputs, runtime)?;
        self.shared.disk.check();
        Ok(daemon)
    }

    /// Runs control planes until told to quit, or until one fails for a reason that does not pass.
    pub(crate) fn run(
        &self,
        first: Option<Daemon>,
        mut heard: UnboundedReceiver<Input>,
    ) -> Result<(), StoreError> {
        let mut daemon = first;
        let mut watchers = Vec::new();
        loop {
            let lives = match daemon.take() {
                Some(lives) => lives,
                None => match self.start(Vec::new()) {
                    Ok(lives) => lives.watched_by(std::mem::take(&mut watchers)),
                    Err(StartError::Store(error)) if error.may_pass() => {
                        self.shared.disk.report_full(&error);
                        if self.refuse(&mut heard) {
                            return Ok(());
                        }
                        continue;
                    }
                    Err(StartError::Store(error)) => return Err(error),
                    Err(error) => {
                        tracing::error!(%error, "the control plane cannot begin again");
                        return Ok(());
                    }
                },
            };
            match lives.run(&mut heard) {
                Ended::Quit => return Ok(()),
                Ended::Failed { error, watchers: of } if error.may_pass() => watchers = of,
                Ended::Failed { error, .. } => return Err(error),
            }
        }
    }

    /// Refuses all inputs for a moment. `true` when told to quit.
    fn refuse(&self, heard: &mut UnboundedReceiver<Input>) -> bool {
        let until = tokio::time::Instant::now() + AGAIN;
        loop {
            let next = async { tokio::time::timeout_at(until, heard.recv()).await };
            match self.runtime.block_on(next) {
                Err(_) => return false,
                Ok(None) => return true,
                Ok(Some(Input::Quit(done))) => {
                    let _ = done.send(());
                    return true;
                }
                // Records of keepers are in their journals; a client is told the reason when its reply is dropped.
                Ok(Some(_)) => {}
            }
        }
    }
}

/// The answer while the database cannot be written.
pub(crate) fn unavailable(shared: &Shared) -> Refused {
    let why = shared.disk.trouble.why();
    Refused::Unavailable(why.unwrap_or_else(|| "the control plane has stopped".to_owned()))
}
