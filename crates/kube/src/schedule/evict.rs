//! Stops gangs: the one place where a gang is stopped, for whatever reason.
//!
//! The planner stops gangs in favour of others. The host stops gangs that cannot go on as they are: bound in part, suspended by
//! their owner, other than what their seats are for. The stop is recorded as an Event at once, since the gang may be over
//! before its status is written again. The eviction of the pods is in `bind`, with the other writes to pods.

use std::sync::Arc;

use muster_core::Event;
use muster_core::gang::Phase;
use muster_core::id::GangId;
use muster_core::plan::{Action, StopReason};

use crate::host::Host;

impl Host {
    /// Stops a gang that has seats. Returns whether it is being stopped.
    pub(crate) fn stop_gang(&mut self, id: GangId, reason: StopReason) -> bool {
        let phase = self.world.gang(id).map(|gang| &gang.phase);
        let was_stopping = phase == Some(&Phase::Stopping);
        if !self.apply_event(&Event::Decided(Action::Stop { gang: id, reason })) {
            return false;
        }
        if !was_stopping {
            self.begin_stopping(id);
        }
        true
    }

    /// Records the stop of a gang, and requeues it so that its pods are evicted.
    pub(crate) fn begin_stopping(&mut self, id: GangId) {
        let name: Option<Arc<str>> = self.world.gang(id).map(|gang| gang.spec.name.clone());
        if let Some(name) = name {
            self.record_stop(&name, id);
            self.dirty.gangs.insert(name);
        }
    }
}
