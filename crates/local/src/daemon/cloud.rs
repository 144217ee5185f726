//! Simulated machines: requested, woken, stopped, released. A machine's life cycle is drawn when it is requested and
//! stored, so that it continues while no control plane runs.

use std::sync::Arc;

use muster_core::id::{ClaimId, OfferingRef};
use muster_core::node::NodeSpec;
use muster_core::order::ClaimFailure;
use muster_core::time::Time;
use muster_core::{Event, Fact};
use muster_sim::cloud::Stage;

use crate::daemon::state::Daemon;
use crate::daemon::timers::Timer;
use crate::store::machines::MachineRow;

impl Daemon {
    /// Requests a machine, or wakes it if it is stopped. A request for a machine that is on its way changes nothing.
    pub(crate) fn request(&mut self, claim: ClaimId, offering: OfferingRef) {
        if self.cloud.is_stopped(claim) {
            return self.wake_machine(claim, offering);
        }
        if self.cloud.has(claim) {
            return;
        }
        let again = self.world.claims().get(&claim).is_some_and(|claim| claim.retries > 0);
        self.fact(&match again {
            true => Fact::ClaimRetried { claim },
            false => Fact::ClaimRequested { claim, offering },
        });
        let life = self.cloud.request(self.now, claim, offering);
        self.expect(claim, &life);
        let row = MachineRow {
            claim,
            offering,
            asked: self.now,
            life,
            stopped: None,
            leaves: None,
            gone: false,
        };
        self.write_machine(row);
    }

    fn wake_machine(&mut self, claim: ClaimId, offering: OfferingRef) {
        let spec = &self.world.offering(offering).spec;
        let start = spec.start_time.unwrap_or(spec.boot_time);
        self.fact(&Fact::ClaimWoken { claim });
        let life = self.cloud.start(self.now, claim, start);
        self.expect(claim, &life);
        if let Some(mut row) = self.machines.get(&claim).cloned() {
            (row.life, row.stopped) = (life, None);
            self.write_machine(row);
        }
    }

    pub(crate) fn expect(&mut self, claim: ClaimId, life: &[(Time, Stage)]) {
        for (at, stage) in life {
            self.timers.add(*at, Timer::Stage(claim, *stage));
        }
    }

    pub(crate) fn write_machine(&mut self, row: MachineRow) {
        let written = self.store.set_machine(&row);
        self.check_store(written);
        self.machines.insert(row.claim, row);
    }

    pub(crate) fn park(&mut self, claim: ClaimId) {
        let Some(stopped) = self.cloud.stop(self.now, claim) else { return };
        self.fact(&Fact::ClaimParked { claim });
        self.timers.add(stopped, Timer::Stopped(claim));
        if let Some(mut row) = self.machines.get(&claim).cloned() {
            row.stopped = Some(stopped);
            self.write_machine(row);
        }
    }

    pub(crate) fn release(&mut self, claim: ClaimId) {
        match self.cloud.release(self.now, claim) {
            Some(gone) => {
                self.fact(&Fact::ClaimReleased { claim });
                self.timers.add(gone, Timer::Gone(claim));
                if let Some(mut row) = self.machines.get(&claim).cloned() {
                    row.leaves = Some(gone);
                    self.write_machine(row);
                }
            }
            None if self.machines.get(&claim).is_some_and(|row| row.leaves.is_some()) => {}
            None => {
                // The claim has no machine: it was refused, or never requested.
                self.apply_or_log(&Event::ClaimGone(claim));
                self.fact(&Fact::ClaimReleased { claim });
                self.fact(&Fact::ClaimGone { claim });
                self.forget_machine(claim);
            }
        }
    }

    fn forget_machine(&mut self, claim: ClaimId) {
        self.cloud.forget(claim);
        if let Some(row) = self.machines.remove(&claim) {
            let written = self.store.set_machine(&MachineRow { gone: true, ..row });
            self.check_store(written);
        }
    }

    /// A machine reaches a stage.
    pub(crate) fn machine(&mut self, claim: ClaimId, stage: Stage) {
        if !self.cloud.has(claim) || !self.world.claims().contains_key(&claim) {
            return; // released in the meantime
        }
        self.mark_stale();
        match stage {
            Stage::Launched => {
                self.apply_or_log(&Event::ClaimLaunched(claim));
                self.fact(&Fact::ClaimLaunched { claim });
            }
            Stage::Joined => self.see_node(self.node_of(claim, 0, false)),
            Stage::Shows(gpus) => {
                self.see_node(self.node_of(claim, gpus, true));
                let offering = self.world.claims()[&claim].offering;
                if let Some(at) = self.cloud.failure(self.now, offering) {
                    self.timers.add(at, Timer::Fails(claim));
                }
            }
            Stage::Fails(failure) => {
                if failure.is_transient() {
                    self.forget_machine(claim); // there never was one; it may be requested again
                }
                self.apply_or_log(&Event::ClaimFailed(claim, failure));
                self.fact(&Fact::ClaimFailed { claim, failure });
            }
        }
    }

    fn node_of(&self, claim: ClaimId, gpus: u16, ready: bool) -> NodeSpec {
        let offering = self.world.claims()[&claim].offering;
        self.world.offering(offering).spec.node(self.node_name(claim), claim, gpus, ready)
    }

    fn node_name(&self, claim: ClaimId) -> Arc<str> {
        self.world.claims()[&claim].node_name()
    }

    pub(crate) fn see_node(&mut self, spec: NodeSpec) {
        let (name, claim, gpus, ready) = (spec.name.clone(), spec.claim, spec.gpus, spec.ready);
        let allocatable = spec.allocatable.clone();
        if self.apply_or_log(&Event::NodeSeen(spec))
            && let Some(node) = self.world.node_named(&name)
        {
            self.fact(&Fact::NodeSeen { node, name, claim, allocatable, gpus, ready });
        }
    }

    /// Removes a node. Returns whether it existed.
    pub(crate) fn lose_node(&mut self, name: &Arc<str>) -> bool {
        let Some(node) = self.world.node_named(name) else { return false };
        self.mark_stale();
        self.apply_or_log(&Event::NodeGone(name.clone()));
        self.fact(&Fact::NodeLost { node, name: name.clone() });
        true
    }

    pub(crate) fn machine_gone(&mut self, claim: ClaimId) {
        if !self.world.claims().contains_key(&claim) {
            return;
        }
        let name = self.node_name(claim);
        self.lose_node(&name);
        self.apply_or_log(&Event::ClaimGone(claim));
        self.fact(&Fact::ClaimGone { claim });
        self.forget_machine(claim);
        self.mark_stale();
    }

    pub(crate) fn machine_stopped(&mut self, claim: ClaimId) {
        if !self.cloud.has(claim) || !self.cloud.is_stopped(claim) {
            return;
        }
        let name = self.node_name(claim);
        self.lose_node(&name);
        self.fact(&Fact::ClaimStopped { claim });
        self.apply_or_log(&Event::ClaimStopped(claim));
    }

    pub(crate) fn machine_fails(&mut self, claim: ClaimId) {
        if !self.cloud.has(claim) || self.cloud.is_stopped(claim) {
            return;
        }
        let name = self.node_name(claim);
        if self.lose_node(&name) {
            self.fact(&Fact::ClaimFailed { claim, failure: ClaimFailure::Vanished });
        }
    }
}
