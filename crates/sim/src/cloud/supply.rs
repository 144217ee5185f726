//! Which offerings are in stock at a time: outages by model, by record, and forced ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_core::id::{OfferingRef, PoolIdx};
use muster_core::pool::PoolSpec;
use muster_core::time::Time;

use crate::cloud::availability::Availability;
use crate::cloud::correlated_outages::Parts;
use crate::cloud::model::CloudModel;
use crate::cloud::random_streams::Stream;
use crate::cloud::stock::Stock;

/// The stock of every offering.
#[derive(Debug)]
pub(crate) struct Supply {
    offerings: BTreeMap<OfferingRef, Source>,
    /// One per pool and region, in the order the offerings name them.
    regions: Vec<Stock>,
    /// One per pool.
    everywhere: Vec<Stock>,
    /// Until when a region, or everything, is forced out of stock.
    outages: BTreeMap<Option<Arc<str>>, Time>,
}

/// The stock of one offering.
#[derive(Debug)]
struct Source {
    region: Arc<str>,
    kind: Kind,
    /// Machines its customers hold.
    out: u32,
}

#[derive(Debug)]
enum Kind {
    /// Never out of stock.
    Endless,
    /// In stock while its own, its region's and the provider's stock is; the last two by index.
    Modelled { own: Box<Stock>, region: usize, everywhere: usize },
    /// As many as were recorded.
    Recorded(Arc<Availability>),
}

impl Supply {
    /// The supply of these pools, random from this seed.
    pub(crate) fn new(pools: &[(PoolSpec, CloudModel)], seed: u64) -> Self {
        let mut supply = Self {
            offerings: BTreeMap::new(),
            regions: Vec::new(),
            everywhere: Vec::new(),
            outages: BTreeMap::new(),
        };
        for (pool, (spec, model)) in (0u16..).zip(pools) {
            supply.add_pool(pool, spec, model, seed);
        }
        supply
    }

    fn add_pool(&mut self, pool: u16, spec: &PoolSpec, model: &CloudModel, seed: u64) {
        let parts = model.stock.map(Parts::of);
        let mut known: Vec<Arc<str>> = Vec::new();
        let first = self.regions.len();
        if let Some(parts) = parts {
            let rng = Stream::Everywhere { pool }.open(seed);
            self.everywhere.push(Stock::new(rng, parts.everywhere));
        }
        for (slot, offering) in (0u16..).zip(&spec.offerings) {
            let at = OfferingRef { pool: PoolIdx(pool), slot };
            let kind = match (model.recorded.get(&offering.zone), parts) {
                (Some(record), _) => Kind::Recorded(record.clone()),
                (None, None) => Kind::Endless,
                (None, Some(parts)) => {
                    let place = known.iter().position(|name| *name == offering.region);
                    let region = place.unwrap_or_else(|| {
                        let rng = Stream::Region { pool, region: known.len() as u16 }.open(seed);
                        known.push(offering.region.clone());
                        self.regions.push(Stock::new(rng, parts.region));
                        known.len() - 1
                    });
                    Kind::Modelled {
                        own: Stock::new(Stream::Offering(at).open(seed), parts.own).into(),
                        region: first + region,
                        everywhere: self.everywhere.len() - 1,
                    }
                }
            };
            self.offerings.insert(at, Source { region: offering.region.clone(), kind, out: 0 });
        }
    }

    /// Forces this region, or every region, out of stock until then.
    pub(crate) fn out_of_stock(&mut self, region: Option<&str>, until: Time) {
        let known = self.outages.entry(region.map(Into::into)).or_insert(until);
        *known = until.max(*known);
    }

    /// Takes one machine if it is in stock.
    pub(crate) fn take(&mut self, now: Time, at: OfferingRef) -> bool {
        let has = !self.is_forced_out(now, at) && self.take_from_source(now, at);
        self.source(at).out += u32::from(has);
        has
    }
    /// Takes one machine even if it is out of stock.
    pub(crate) fn take_always(&mut self, at: OfferingRef) {
        self.source(at).out += 1;
    }
    /// Returns one machine.
    pub(crate) fn give_back(&mut self, now: Time, at: OfferingRef) {
        let source = self.source(at);
        source.out = source.out.saturating_sub(1);
        if let Kind::Modelled { own, .. } = &mut source.kind {
            own.give_back(now);
        }
    }

    /// Offerings whose customers hold more machines than are available now, and how many too many.
    pub(crate) fn overdrawn(&self, now: Time) -> Vec<(OfferingRef, u32)> {
        let excess = |(at, record, out): (_, &Availability, u32)| match record.at(now) {
            count if count < out => Some((at, out - count)),
            _ => None,
        };
        self.recorded().filter_map(excess).collect()
    }
    /// When, after `now`, an offering will have fewer machines than its customers hold.
    pub(crate) fn next_overdrawn(&self, now: Time) -> Option<Time> {
        self.recorded().filter_map(|(_, record, out)| record.next_below(now, out)).min()
    }

    fn recorded(&self) -> impl Iterator<Item = (OfferingRef, &Availability, u32)> {
        self.offerings.iter().filter_map(|(at, source)| match &source.kind {
            Kind::Recorded(record) => Some((*at, &**record, source.out)),
            Kind::Endless | Kind::Modelled { .. } => None,
        })
    }

    fn is_forced_out(&self, now: Time, at: OfferingRef) -> bool {
        let region = &self.offerings[&at].region;
        let concerns = |of: &Option<Arc<str>>| of.as_ref().is_none_or(|of| of == region);
        self.outages.iter().any(|(of, until)| now < *until && concerns(of))
    }

    fn take_from_source(&mut self, now: Time, at: OfferingRef) -> bool {
        let Source { kind, out, .. } = self.offerings.get_mut(&at).expect("of a known pool");
        match kind {
            Kind::Endless => true,
            Kind::Modelled { own, region, everywhere } => {
                self.everywhere[*everywhere].is_up(now)
                    && self.regions[*region].is_up(now)
                    && own.take(now)
            }
            Kind::Recorded(record) => *out < record.at(now),
        }
    }

    /// Whether an offering that follows the model is in stock, be it with few left.
    #[cfg(test)]
    pub(crate) fn is_up(&mut self, now: Time, at: OfferingRef) -> bool {
        let Kind::Modelled { own, region, everywhere } =
            &mut self.offerings.get_mut(&at).unwrap().kind
        else {
            panic!("{at:?} does not follow the model");
        };
        self.everywhere[*everywhere].is_up(now)
            && self.regions[*region].is_up(now)
            && own.is_up(now)
    }

    fn source(&mut self, at: OfferingRef) -> &mut Source {
        self.offerings.get_mut(&at).expect("of a known pool")
    }
}
