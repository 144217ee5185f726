//! Whether this process may write, and until when: the election publishes it, and every writer reads it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::lease::boot_clock::BootTime;

/// The current term of this process.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Term {
    /// Until when this process may write, by its own clock. `None` while it does not hold the Lease.
    pub until: Option<BootTime>,
    /// Whether the term ended because the decision loop made no progress.
    pub stalled: bool,
}

/// How often a wait for the end of a term reads the clock: timers stop while a machine is suspended.
const CLOCK_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Whether this process may write, and for how long.
#[derive(Clone, Debug)]
pub struct Leadership {
    term: watch::Receiver<Term>,
    /// Keeps the channel open where there is no election.
    _sender: Option<Arc<watch::Sender<Term>>>,
}

impl Leadership {
    /// Leadership without a lease: there is no other replica.
    pub fn without_lease() -> Self {
        let until = BootTime::now().after(Duration::from_secs(u32::MAX.into()));
        let (sender, leadership) = Self::until(Term { until: Some(until), stalled: false });
        Self { _sender: Some(Arc::new(sender)), ..leadership }
    }

    /// Leadership by the terms that the election sends.
    pub(crate) fn until(first: Term) -> (watch::Sender<Term>, Self) {
        let (sender, term) = watch::channel(first);
        (sender, Self { term, _sender: None })
    }

    /// Whether this process may write now.
    pub fn is_held(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// For how long this process may write if the Lease is not renewed.
    pub fn remaining(&self) -> Duration {
        let until = self.term.borrow().until;
        until.map_or(Duration::ZERO, |until| until.since(BootTime::now()))
    }

    /// Whether the term ended because the decision loop made no progress.
    pub fn is_stalled(&self) -> bool {
        self.term.borrow().stalled
    }

    /// Waits until this process leads.
    pub async fn acquired(&mut self) {
        while !self.is_held() {
            if self.term.changed().await.is_err() {
                // The election has ended: this process will never lead again.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until this process no longer leads.
    pub async fn lost(&mut self) {
        while self.is_held() {
            let check = tokio::time::sleep(CLOCK_CHECK_INTERVAL.min(self.remaining()));
            tokio::select! {
                changed = self.term.changed() => if changed.is_err() { return },
                () = check => {}
            }
        }
    }
}
