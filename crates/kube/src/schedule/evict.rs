//! Gangs are stopped: decided, said, and seen to, in one place whoever has a reason.
//!
//! The planner stops gangs for others' sake. The host stops those that it sees cannot go on as they are: bound in part, held
//! back by their owner, other than what they have seats for. Whoever is stopped is told so at once, since it may be over
//! before its status is looked at again.

use std::sync::Arc;

use muster_core::Event;
use muster_core::gang::Phase;
use muster_core::id::GangId;
use muster_core::plan::{Action, StopReason};

use crate::host::Host;

impl Host {
    /// Stops a gang that has seats. Whether it is being stopped.
    pub(crate) fn stop_gang(&mut self, id: GangId, reason: StopReason) -> bool {
        let phase = self.world.gang(id).map(|gang| &gang.phase);
        let is_told = phase == Some(&Phase::Stopping);
        if !self.apply_event(&Event::Decided(Action::Stop { gang: id, reason })) {
            return false;
        }
        if !is_told {
            self.begin_stopping(id);
        }
        true
    }

    /// A gang is being stopped: that is said, and its pods are sent away.
    pub(crate) fn begin_stopping(&mut self, id: GangId) {
        let name: Option<Arc<str>> = self.world.gang(id).map(|gang| gang.spec.name.clone());
        if let Some(name) = name {
            self.announce_stop(&name, id);
            self.dirty.gangs.insert(name);
        }
    }
}
