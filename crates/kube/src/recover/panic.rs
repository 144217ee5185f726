//! Goes on after a panic: finds what caused it, and has everything else counted anew without it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use muster_core::gang::Phase;

use crate::host::Host;
use crate::recover::quarantine::{Subject, message};

/// The host panicked, and nothing can be left out to prevent that.
#[derive(Debug)]
pub(crate) struct Unknown(pub(crate) String);

impl Host {
    /// Runs part of a pass. After a panic the host must be dropped: its records may be half changed.
    ///
    /// # Errors
    /// When it panicked. The quarantine knows what is left out from then on.
    pub(crate) fn survive<T>(&mut self, part: impl FnOnce(&mut Self) -> T) -> Result<T, Panicked> {
        let passed = catch_unwind(AssertUnwindSafe(|| part(self)));
        passed.map_err(|panic| Panicked(self.suspect(&*panic)))
    }

    /// Leaves out what the host was busy with.
    fn suspect(&mut self, panic: &(dyn Any + Send)) -> Result<(), Unknown> {
        let (said, now) = (message(panic), Instant::now());
        let found = match self.subject.take() {
            None => false,
            Some(Subject::Planner) => {
                let suspects = self.shown_to_the_planner();
                self.quarantine.plan_failed(&suspects, said, now)
            }
            Some(subject) => {
                self.quarantine.leave_out(subject, said, now);
                true
            }
        };
        if found { Ok(()) } else { Err(Unknown(said.to_owned())) }
    }

    /// Gangs that changed since the planner last returned: of these the ones that wait, if there are any. A gang with
    /// seats is suspected last, since it is not looked after while it is withheld.
    fn shown_to_the_planner(&self) -> Vec<Arc<str>> {
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

    /// Why a gang is left out, if it is.
    pub(crate) fn left_out(&self, gang: &Arc<str>) -> Option<String> {
        self.quarantine.why(gang, Instant::now())
    }

    /// Notes what is handled from now on, and whether it is: what is left out is not.
    pub(crate) fn handles(&mut self, subject: Subject) -> bool {
        let is_left_out = self.quarantine.has(&subject, Instant::now());
        self.subject = (!is_left_out).then_some(subject);
        !is_left_out
    }

    /// Tries again what was left out for long enough.
    pub(crate) fn retry_left_out(&mut self) {
        for subject in self.quarantine.due(Instant::now()) {
            tracing::info!(?subject, "tried again");
            match subject {
                Subject::Gang(name) => drop(self.dirty.gangs.insert(name)),
                // What was not taken in is seen with the next list.
                _ => self.must_rebuild = true,
            }
        }
    }
}

/// A pass that ended in a panic, and whether something was found to leave out.
#[derive(Debug)]
pub(crate) struct Panicked(pub(crate) Result<(), Unknown>);
