//! Requests, stops, wakes and releases machines at their providers.

use muster_core::id::{ClaimId, OfferingRef};
use muster_core::{Event, Fact};

use crate::host::events::SimEvent;
use crate::host::sim::Sim;

impl Sim {
    /// Requests a machine, retries a throttled request, or wakes a stopped machine.
    pub(crate) fn request(&mut self, claim: ClaimId, offering: OfferingRef) {
        if let Some(machine) = self.cloud.machines.get(&claim) {
            if machine.stopped.is_some() {
                self.wake(claim, offering);
            }
            return;
        }
        let again = self.world.claims().get(&claim).is_some_and(|claim| claim.retries > 0);
        if again {
            self.note_fact(&Fact::ClaimRetried { claim });
        } else {
            self.note_fact(&Fact::ClaimRequested { claim, offering });
        }
        for (at, stage) in self.cloud.request(self.now, claim, offering) {
            self.event_queue.add(at, SimEvent::Machine(claim, stage));
        }
        self.schedule_reclaim();
    }

    fn wake(&mut self, claim: ClaimId, offering: OfferingRef) {
        let spec = &self.world.offering(offering).spec;
        let start = spec.start_time.unwrap_or(spec.boot_time);
        self.note_fact(&Fact::ClaimWoken { claim });
        for (at, stage) in self.cloud.start(self.now, claim, start) {
            self.event_queue.add(at, SimEvent::Machine(claim, stage));
        }
        self.schedule_reclaim();
    }

    pub(crate) fn park(&mut self, claim: ClaimId) {
        if let Some(stopped) = self.cloud.stop(self.now, claim) {
            self.note_fact(&Fact::ClaimParked { claim });
            self.event_queue.add(stopped, SimEvent::MachineStopped(claim));
        }
    }

    /// Schedules the next time a provider reclaims machines.
    pub(crate) fn schedule_reclaim(&mut self) {
        let Some(at) = self.cloud.next_reclaim(self.now) else { return };
        if self.reclaim_at.is_none_or(|known| known <= self.now || at < known) {
            self.reclaim_at = Some(at);
            self.event_queue.add(at, SimEvent::Reclaim);
        }
    }

    pub(crate) fn release(&mut self, claim: ClaimId) {
        match self.cloud.release(self.now, claim) {
            Some(gone) => {
                self.note_fact(&Fact::ClaimReleased { claim });
                self.event_queue.add(gone, SimEvent::MachineGone(claim));
            }
            None if self.cloud.machines.contains_key(&claim) => {} // it is on its way out
            None => {
                // The provider has no machine for it: it refused, or never got a request.
                let told = self.apply(Event::ClaimGone(claim));
                debug_assert!(told.is_ok());
                self.note_fact(&Fact::ClaimReleased { claim });
                self.note_fact(&Fact::ClaimGone { claim });
            }
        }
    }
}
