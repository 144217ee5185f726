//! Whether this process may act, and until when: what the campaign for the lease tells everything that writes.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::lease::boot_clock::BootTime;

/// How the lease stands for this process.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Term {
    /// Until when this process may act, by its own clock. `None` while another holds the lease.
    pub until: Option<BootTime>,
    /// Whether the lease was let go because the decision loop made no progress.
    pub stalled: bool,
}

/// How often a term is compared with the clock by waits that end with it: timers stop while a machine is suspended.
const COMPARED: Duration = Duration::from_millis(250);

/// Whether this process may act, and for how long.
#[derive(Clone, Debug)]
pub struct Leadership {
    term: watch::Receiver<Term>,
    /// Kept where no lease is needed.
    _own: Option<Arc<watch::Sender<Term>>>,
}

impl Leadership {
    /// Leadership without a lease: there is no other replica.
    pub fn forever() -> Self {
        let until = BootTime::now().after(Duration::from_secs(u32::MAX.into()));
        let (own, leadership) = Self::until(Term { until: Some(until), stalled: false });
        Self { _own: Some(Arc::new(own)), ..leadership }
    }

    /// Leadership by terms that are sent.
    pub(crate) fn until(first: Term) -> (watch::Sender<Term>, Self) {
        let (told, term) = watch::channel(first);
        (told, Self { term, _own: None })
    }

    /// Whether this process may act now.
    pub fn holds(&self) -> bool {
        !self.left().is_zero()
    }

    /// For how long this process may act, if the lease is not renewed.
    pub fn left(&self) -> Duration {
        let until = self.term.borrow().until;
        until.map_or(Duration::ZERO, |until| until.since(BootTime::now()))
    }

    /// Whether the lease was let go because the decision loop made no progress.
    pub fn is_stalled(&self) -> bool {
        self.term.borrow().stalled
    }

    /// Waits until the lease is held.
    pub async fn won(&mut self) {
        while !self.holds() {
            if self.term.changed().await.is_err() {
                // Nothing renews it any more: it will never be held again.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until the lease is no longer held.
    pub async fn lost(&mut self) {
        while self.holds() {
            let compared = tokio::time::sleep(COMPARED.min(self.left()));
            tokio::select! {
                changed = self.term.changed() => if changed.is_err() { return },
                () = compared => {}
            }
        }
    }
}
