//! Restores a cloud that outlives its host: pools that change, and machines that were requested before a restart.

use muster_core::id::{ClaimId, OfferingRef};
use muster_core::pool::PoolSpec;
use muster_core::time::Time;

use crate::cloud::machine::{Machine, Stage, up_at};
use crate::cloud::model::CloudModel;
use crate::cloud::providers::{Cloud, count};
use crate::cloud::random_streams::Stream;
use crate::cloud::supply::Supply;

/// A machine as it was before a restart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Remembered {
    /// Its offering.
    pub offering: OfferingRef,
    /// When it was requested.
    pub asked: Time,
    /// Its stages with their times.
    pub life: Vec<(Time, Stage)>,
    /// Since when it is stopped.
    pub stopped: Option<Time>,
    /// Whether it was released.
    pub released: bool,
}

impl Cloud {
    /// Replaces the pools. Machines stay; outages begin anew.
    pub fn set_pools(&mut self, pools: Vec<(PoolSpec, CloudModel)>) {
        self.supply = Supply::new(&pools, self.seed);
        self.pools = pools;
        for machine in self.machines.values().filter(|machine| machine.held) {
            self.supply.take_always(machine.offering);
        }
    }

    /// Counts a machine that was requested before a restart, so that the next one is another.
    pub fn was_asked(&mut self, offering: OfferingRef) {
        count(&mut self.asked, offering);
        let (pool, _) = &self.pools[usize::from(offering.pool.0)];
        let zone = pool.offerings[usize::from(offering.slot)].zone.clone();
        count(&mut self.asked_in, zone);
    }

    /// Restores a machine as it was before a restart.
    pub fn remember(&mut self, claim: ClaimId, known: &Remembered) {
        let fails = known.life.iter().any(|(_, stage)| matches!(stage, Stage::Fails(_)));
        let held = !known.released && known.stopped.is_none() && !fails;
        if held {
            self.supply.take_always(known.offering);
        }
        let number = u32::MAX - claim.0; // a random stream that no other machine has
        let machine = Machine {
            offering: known.offering,
            billed_from: None,
            released: known.released,
            reclaimed: false,
            asked: known.asked,
            up: up_at(&known.life),
            stopped: known.stopped,
            held,
            rng: Stream::Machine(known.offering, number).open(self.seed),
        };
        self.machines.insert(claim, machine);
    }

    /// Removes a machine that is gone, or never existed.
    pub fn forget(&mut self, claim: ClaimId) {
        self.machines.remove(&claim);
    }

    /// Whether a claim has a machine that was not released.
    pub fn has(&self, claim: ClaimId) -> bool {
        self.machines.get(&claim).is_some_and(|machine| !machine.released && !machine.reclaimed)
    }

    /// Whether a machine is stopped.
    pub fn is_stopped(&self, claim: ClaimId) -> bool {
        self.machines.get(&claim).is_some_and(|machine| machine.stopped.is_some())
    }
}
