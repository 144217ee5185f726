//! Catches panics of the host: quarantines the object that was being handled, and has the World rebuilt without it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use muster_core::gang::Phase;

use crate::host::Host;
use crate::recover::quarantine::{WorkItem, panic_message};

/// The host panicked, and there is no object to quarantine.
#[derive(Debug)]
pub(crate) struct UnknownCause(pub(crate) String);

impl Host {
    /// Runs part of a cycle. After a panic the host must be dropped: its state may be half changed.
    ///
    /// # Errors
    /// When it panicked. The quarantine has the object from then on.
    pub(crate) fn catch_panic<T>(
        &mut self,
        part: impl FnOnce(&mut Self) -> T,
    ) -> Result<T, Panicked> {
        let passed = catch_unwind(AssertUnwindSafe(|| part(self)));
        passed.map_err(|panic| Panicked(self.quarantine_current_item(&*panic)))
    }

    /// Quarantines the object that was being handled, or suspects of the planner's panic.
    fn quarantine_current_item(&mut self, panic: &(dyn Any + Send)) -> Result<(), UnknownCause> {
        let (message, now) = (panic_message(panic), Instant::now());
        let found = match self.current_item.take() {
            None => false,
            Some(WorkItem::Planner) => {
                let suspects = self.planner_suspects();
                self.quarantine.plan_failed(&suspects, message, now)
            }
            Some(item) => {
                self.quarantine.isolate(item, message, now);
                true
            }
        };
        if found { Ok(()) } else { Err(UnknownCause(message.to_owned())) }
    }

    /// Gangs that changed since the planner last returned: of these the waiting ones, if there are any. A gang with seats is
    /// suspected last, since it is not reconciled while it is withheld.
    fn planner_suspects(&self) -> Vec<Arc<str>> {
        let waits = |name: &&Arc<str>| {
            let id = self.world.gang_named(name);
            id.and_then(|id| self.world.gang(id)).is_some_and(|gang| gang.phase == Phase::Waiting)
        };
        let known = |name: &&Arc<str>| self.world.gang_named(name).is_some();
        let waiting: Vec<Arc<str>> = self.unplanned.iter().filter(waits).cloned().collect();
        if !waiting.is_empty() {
            return waiting;
        }
        self.unplanned.iter().filter(known).cloned().collect()
    }

    /// Why a gang is quarantined, if it is.
    pub(crate) fn quarantine_reason(&self, gang: &Arc<str>) -> Option<String> {
        self.quarantine.reason(gang, Instant::now())
    }

    /// Records the object that is handled from now on. Returns false, and records none, if it is quarantined.
    pub(crate) fn begin_item(&mut self, item: WorkItem) -> bool {
        let is_left_out = self.quarantine.has(&item, Instant::now());
        self.current_item = (!is_left_out).then_some(item);
        !is_left_out
    }

    /// Retries objects whose quarantine is over.
    pub(crate) fn retry_quarantined(&mut self) {
        for item in self.quarantine.due(Instant::now()) {
            tracing::info!(?item, "retried after quarantine");
            match item {
                WorkItem::Gang(name) => drop(self.dirty.gangs.insert(name)),
                // What was not observed is found by a rebuild.
                _ => self.must_rebuild = true,
            }
        }
    }
}

/// A cycle that ended in a panic, and whether an object was quarantined for it.
#[derive(Debug)]
pub(crate) struct Panicked(pub(crate) Result<(), UnknownCause>);
