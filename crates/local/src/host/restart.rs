//! The life of a control plane whose disk may be full: when nothing can be written, what is in memory and was not written is
//! dropped, all that was shown stays readable, and it begins again from the database as soon as that can be written.

use std::time::Duration;

use muster_server::Refused;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use crate::daemon::inputs::Input;
use crate::daemon::state::{Daemon, Ended, Shared, Watcher};
use crate::store::database::StoreError;
use crate::{Options, StartError};

/// How long after a failure the database is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// What a control plane is begun with, and begun again.
pub(crate) struct RestartLoop {
    pub(crate) options: Options,
    pub(crate) shared: Shared,
    pub(crate) inputs: UnboundedSender<Input>,
    pub(crate) runtime: tokio::runtime::Handle,
}

impl RestartLoop {
    /// The control plane, as it was when it was last heard of.
    pub(crate) fn start(&self, watchers: Vec<Watcher>) -> Result<Daemon, StartError> {
        self.shared.disk.release_reserve_if_full();
        let (inputs, runtime) = (self.inputs.clone(), self.runtime.clone());
        let daemon =
            Daemon::recover(&self.options, watchers, self.shared.clone(), inputs, runtime)?;
        self.shared.disk.check();
        Ok(daemon)
    }

    /// Has a control plane take turns until it is told to quit, or ends for a reason that does not pass.
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

    /// Refuses all that comes in, for a moment. `true` when it is told to quit.
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
                // What keepers say is in their journals; whoever asks is told why by the reply that is dropped.
                Ok(Some(_)) => {}
            }
        }
    }
}

/// What is answered while nothing can be written.
pub(crate) fn unavailable(shared: &Shared) -> Refused {
    let why = shared.disk.trouble.why();
    Refused::Unavailable(why.unwrap_or_else(|| "the control plane has stopped".to_owned()))
}
