//! Gangs that are over are kept for a while, and not without number. What they used is kept for good.

use std::sync::Arc;
use std::time::{Duration, Instant};

use muster_server::Kind;

use super::Daemon;
use super::deeds::Deed;
use crate::clock::wall_now;

/// How long, and how many, gangs are kept that are over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Keep {
    /// For so long.
    pub time: Duration,
    /// Not more than so many.
    pub gangs: u64,
}

impl Default for Keep {
    fn default() -> Self {
        Self { time: Duration::from_secs(7 * 24 * 3_600), gangs: 10_000 }
    }
}

impl Keep {
    /// How often it is looked for those that are to go: often enough that none stays much longer than said.
    pub(super) fn look_every(&self) -> Duration {
        (self.time / 10).clamp(Duration::from_secs(1), Duration::from_secs(60))
    }
}

impl Daemon {
    /// Forgets those that were over long ago, with all that they printed.
    pub(super) fn forget_old(&mut self) {
        if self.looked.is_some_and(|looked| looked.elapsed() < self.retain.look_every()) {
            return;
        }
        self.looked = Some(Instant::now());
        let time = i64::try_from(self.retain.time.as_millis()).unwrap_or(i64::MAX);
        let old = self.store.gangs_to_forget(wall_now().saturating_sub(time), self.retain.gangs);
        for (uid, name) in self.keep(old).unwrap_or_default() {
            let runs = self.store.forget_gang(uid);
            for run in self.keep(runs).unwrap_or_default() {
                self.deeds.push(Deed::Remove(self.run_directory(run)));
            }
            let name: Arc<str> = name.into();
            if self.gangs.get(&name).is_some_and(|gang| gang.uid == uid) {
                self.gangs.remove(&name);
                self.outbox.remove(self.clock.stamp(self.now), Kind::Gang, &name);
            }
        }
    }
}
