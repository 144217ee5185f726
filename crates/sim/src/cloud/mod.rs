//! Clouds that boot, stock out and fail.

mod machine;
mod model;
mod stock;

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_core::id::{ClaimId, OfferingRef};
use muster_core::pool::PoolSpec;
use muster_core::time::{Span, Time};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustc_hash::FxHashMap;

pub use machine::Stage;
pub use model::{CloudModel, Scripted, StockModel};

use stock::Stock;

/// What a provider decided about one machine when it was asked for, and how far it is.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(crate) offering: OfferingRef,
    pub(crate) billed_from: Option<Time>,
    pub(crate) released: bool,
}

/// Every provider of the simulation: pools in order of declaration, each with its own model.
#[derive(Debug)]
pub struct Cloud {
    pools: Vec<(PoolSpec, CloudModel)>,
    rng: ChaCha8Rng,
    stock: BTreeMap<OfferingRef, Stock>,
    regions: BTreeMap<(u16, Arc<str>), Stock>,
    /// Claims asked for so far, per zone; scripts count on it.
    asked: BTreeMap<Arc<str>, u32>,
    pub(crate) machines: FxHashMap<ClaimId, Machine>,
    calm: bool,
}

impl Cloud {
    /// Providers for these pools, random from this seed.
    pub fn new(pools: Vec<(PoolSpec, CloudModel)>, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(1);
        let (stock, regions) = (BTreeMap::new(), BTreeMap::new());
        let (asked, machines) = (BTreeMap::new(), FxHashMap::default());
        Self { pools, rng, stock, regions, asked, machines, calm: false }
    }
    /// From here on nothing fails any more.
    pub fn calm(&mut self) {
        self.calm = true;
    }

    /// Asks for one machine; what will become of it and when. Asking again for the same claim changes nothing.
    pub(crate) fn request(
        &mut self,
        now: Time,
        claim: ClaimId,
        offering: OfferingRef,
    ) -> Vec<(Time, Stage)> {
        if self.machines.contains_key(&claim) {
            return Vec::new();
        }
        let machine = Machine { offering, billed_from: None, released: false };
        self.machines.insert(claim, machine);
        let (pool, model) = &self.pools[usize::from(offering.pool.0)];
        let spec = pool.offerings[usize::from(offering.slot)].clone();
        let model = model.clone();
        let asked = self.asked.entry(spec.zone.clone()).or_default();
        *asked += 1;
        let scripted = model.scripted(&spec.zone, *asked).filter(|_| !self.calm);
        let in_stock = self.take_stock(now, offering, &model, &spec.region);
        machine::life(&mut self.rng, now, &spec, &model, scripted, in_stock, self.calm)
    }

    /// Tells the provider to take a machine back; when it will be gone.
    pub(crate) fn release(&mut self, now: Time, claim: ClaimId) -> Option<Time> {
        let machine = self.machines.get_mut(&claim).filter(|machine| !machine.released)?;
        machine.released = true;
        Some(now + Span::secs(self.rng.random_range(5..40)))
    }

    /// When a machine that has just come into service will fail, if ever.
    pub(crate) fn failure(&mut self, now: Time, offering: OfferingRef) -> Option<Time> {
        let mean = self.pools[usize::from(offering.pool.0)].1.mean_time_to_failure?;
        if self.calm {
            return None;
        }
        Some(now + stock::exponential(&mut self.rng, mean))
    }

    fn take_stock(
        &mut self,
        now: Time,
        at: OfferingRef,
        model: &CloudModel,
        region: &Arc<str>,
    ) -> bool {
        let Some(stock) = model.stock.filter(|_| !self.calm) else { return true };
        let zone = self.stock.entry(at).or_insert_with(|| Stock::new(&mut self.rng, now, stock));
        let zone_has = zone.take(&mut self.rng, now, stock);
        // A region goes out as a whole now and then: measured zones of one region are correlated.
        let regional = StockModel { mean_up: stock.mean_up.saturating_mul(4), ..stock };
        let region = self
            .regions
            .entry((at.pool.0, region.clone()))
            .or_insert_with(|| Stock::new(&mut self.rng, now, regional));
        zone_has && region.take(&mut self.rng, now, regional)
    }
}
