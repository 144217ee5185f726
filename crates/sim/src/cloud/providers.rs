//! All providers of a simulation: requests, releases, stops, starts and reclaims of machines.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_core::id::{ClaimId, OfferingRef};
use muster_core::order::ClaimFailure;
use muster_core::pool::PoolSpec;
use muster_core::time::{Span, Time};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rustc_hash::FxHashMap;

use crate::cloud::machine::Stage;
use crate::cloud::model::CloudModel;

use crate::cloud::machine::Machine;

use crate::cloud::machine::BootDraw;
use crate::cloud::random_streams::Stream;
use crate::cloud::supply::Supply;

/// Every provider of the simulation: pools in order of declaration, each with its own model.
#[derive(Debug)]
pub struct Cloud {
    pub(super) pools: Vec<(PoolSpec, CloudModel)>,
    pub(super) seed: u64,
    pub(super) supply: Supply,
    pub(super) failures: BTreeMap<OfferingRef, ChaCha8Rng>,
    /// Machines requested so far, per offering; the number of a machine decides its lifecycle.
    pub(super) asked: BTreeMap<OfferingRef, u32>,
    /// The same per zone; scripted failures go by it.
    pub(super) asked_in: BTreeMap<Arc<str>, u32>,
    pub(crate) machines: FxHashMap<ClaimId, Machine>,
    pub(super) faults_stopped: bool,
}

impl Cloud {
    /// Providers for these pools, random from this seed.
    pub fn new(pools: Vec<(PoolSpec, CloudModel)>, seed: u64) -> Self {
        let supply = Supply::new(&pools, seed);
        let (failures, machines) = (BTreeMap::new(), FxHashMap::default());
        let (asked, asked_in) = (BTreeMap::new(), BTreeMap::new());
        Self { pools, seed, supply, failures, asked, asked_in, machines, faults_stopped: false }
    }
    /// From here on nothing fails any more.
    pub fn stop_faults(&mut self) {
        self.faults_stopped = true;
    }
    /// Every request in this region, or everywhere, is a stock-out until then.
    pub fn out_of_stock(&mut self, region: Option<&str>, until: Time) {
        self.supply.out_of_stock(region, until);
    }

    /// Requests one machine; returns its stages with their times. Idempotent per claim, unless the provider throttled it
    /// and the host has removed the claim from `machines`.
    pub fn request(
        &mut self,
        now: Time,
        claim: ClaimId,
        offering: OfferingRef,
    ) -> Vec<(Time, Stage)> {
        if self.machines.contains_key(&claim) {
            return Vec::new();
        }
        let number = count(&mut self.asked, offering) - 1;
        let mut rng = Stream::Machine(offering, number).open(self.seed);
        let (pool, model) = &self.pools[usize::from(offering.pool.0)];
        let spec = &pool.offerings[usize::from(offering.slot)];
        let scripted = model.scripted(&spec.zone, count(&mut self.asked_in, spec.zone.clone()));
        let drawn = BootDraw::draw(&mut rng, model);
        let (fate, sigma) = if self.faults_stopped {
            self.supply.take_always(offering);
            (None, 0.0)
        } else {
            (fate(&mut self.supply, now, offering, scripted, drawn), model.sigma)
        };
        let life = crate::cloud::machine::life(
            &mut rng,
            now,
            (spec, spec.boot_time),
            (model, sigma),
            fate,
        );
        let machine = Machine {
            offering,
            billed_from: None,
            released: false,
            reclaimed: false,
            asked: now,
            up: crate::cloud::machine::up_at(&life),
            stopped: None,
            held: !is_refusal(fate),
            rng,
        };
        self.machines.insert(claim, machine);
        life
    }

    /// Releases a machine; returns when it will be gone.
    pub fn release(&mut self, now: Time, claim: ClaimId) -> Option<Time> {
        let machine = self.machines.get_mut(&claim).filter(|machine| !machine.released)?;
        machine.released = true;
        give_back(&mut self.supply, now, machine);
        Some(now + shutdown_time(machine))
    }

    /// Stops a machine that is up, to be started again; returns when it is stopped. From then on it is not billed, and its
    /// place in the stock is free for others.
    pub fn stop(&mut self, now: Time, claim: ClaimId) -> Option<Time> {
        let machine = self
            .machines
            .get_mut(&claim)
            .filter(|machine| machine.is_up(now) && !machine.released && !machine.reclaimed)?;
        machine.billed_from = None;
        give_back(&mut self.supply, now, machine);
        let stopped = now + shutdown_time(machine);
        machine.stopped = Some(stopped);
        Some(stopped)
    }

    /// Starts a stopped machine again, in about `start_time`. It stays stopped when the offering is out of stock at that
    /// moment: stopping gave up its place. A machine that is not stopped does not change.
    pub fn start(&mut self, now: Time, claim: ClaimId, start_time: Span) -> Vec<(Time, Stage)> {
        let Some(machine) = self.machines.get_mut(&claim).filter(|machine| !machine.released)
        else {
            return Vec::new();
        };
        let Some(stopped) = machine.stopped else { return Vec::new() };
        let (pool, model) = &self.pools[usize::from(machine.offering.pool.0)];
        let spec = &pool.offerings[usize::from(machine.offering.slot)];
        let (fate, sigma) = if self.faults_stopped {
            self.supply.take_always(machine.offering);
            (None, 0.0)
        } else {
            let granted = self.supply.take(now, machine.offering);
            ((!granted).then_some(ClaimFailure::StockOut), model.sigma)
        };
        let from = if fate.is_some() { now } else { now.max(stopped) };
        let boot = (spec, start_time);
        let life = crate::cloud::machine::life(&mut machine.rng, from, boot, (model, sigma), fate);
        if fate.is_none() {
            (machine.up, machine.stopped, machine.held) =
                (crate::cloud::machine::up_at(&life), None, true);
            machine.asked = now;
        }
        life
    }

    /// When a machine that has just come into service will fail, if ever.
    pub fn failure(&mut self, now: Time, offering: OfferingRef) -> Option<Time> {
        let mean = self.pools[usize::from(offering.pool.0)].1.mean_time_to_failure?;
        let seed = self.seed;
        let rng =
            self.failures.entry(offering).or_insert_with(|| Stream::Failures(offering).open(seed));
        let lasts = crate::cloud::stock::exponential(rng, mean);
        (!self.faults_stopped).then(|| now + lasts)
    }

    /// The notice before a machine of this offering goes.
    pub fn notice(&self, offering: OfferingRef) -> Span {
        self.pools[usize::from(offering.pool.0)].1.notice
    }

    /// Machines the provider reclaims now, because the record has fewer than its customers hold: the youngest of an
    /// offering first. Each is returned once; it is gone when the host says so.
    pub fn reclaimed(&mut self, now: Time) -> Vec<ClaimId> {
        let mut reclaimed = Vec::new();
        for (offering, excess) in self.supply.overdrawn(now) {
            let held = |(_, machine): &(&ClaimId, &mut Machine)| {
                machine.held && machine.offering == offering && !self.faults_stopped
            };
            let mut held: Vec<_> = self.machines.iter_mut().filter(held).collect();
            held.sort_unstable_by_key(|(claim, machine)| (machine.asked, **claim));
            for (claim, machine) in held.into_iter().rev().take(excess as usize) {
                give_back(&mut self.supply, now, machine);
                reclaimed.push(*claim);
            }
        }
        reclaimed
    }

    /// When, after `now`, machines will be reclaimed if none is released before.
    pub fn next_reclaim(&self, now: Time) -> Option<Time> {
        self.supply.next_overdrawn(now).filter(|_| !self.faults_stopped)
    }
}

/// How a request fails, if it does: by the script, by a random fault, or by a stock-out.
fn fate(
    supply: &mut Supply,
    now: Time,
    offering: OfferingRef,
    scripted: Option<ClaimFailure>,
    drawn: BootDraw,
) -> Option<ClaimFailure> {
    if scripted.is_some() {
        if !is_refusal(scripted) {
            supply.take_always(offering);
        }
        return scripted;
    }
    if drawn.throttled {
        return Some(ClaimFailure::Throttled);
    }
    if !supply.take(now, offering) {
        return Some(ClaimFailure::StockOut);
    }
    drawn.of_boot()
}

/// Whether the request was refused, so that there never is a machine.
fn is_refusal(fate: Option<ClaimFailure>) -> bool {
    matches!(fate, Some(ClaimFailure::StockOut | ClaimFailure::Throttled))
}

fn give_back(supply: &mut Supply, now: Time, machine: &mut Machine) {
    if std::mem::take(&mut machine.held) {
        supply.give_back(now, machine.offering);
    }
}

/// How long a machine takes to shut down.
fn shutdown_time(machine: &mut Machine) -> Span {
    Span::secs(machine.rng.random_range(5..40))
}

/// Counts one more; returns the new count.
pub(super) fn count<K: Ord>(counts: &mut BTreeMap<K, u32>, key: K) -> u32 {
    let number = counts.entry(key).or_default();
    *number += 1;
    *number
}
