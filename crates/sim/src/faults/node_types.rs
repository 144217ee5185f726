//! Draws more node types: small nodes beside large ones, reserved and spot tiers beside on demand, pools that buy for
//! growth, and pools that keep their nodes.
//!
//! It has random numbers of its own, so that a scenario without it does not change. It only adds supply: every gang that
//! is feasible without it is feasible with it.

use std::collections::BTreeMap;

use muster_core::ahead::Consolidate;
use muster_core::money::Money;
use muster_core::pool::{PoolLimits, PoolSpec};
use muster_core::time::Span;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::host::Setup;

/// Their random stream.
const STREAM: u64 = 6;

/// Gives the pools of half of all scenarios other node types.
pub(crate) fn draw(seed: u64, setup: &mut Setup) {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(STREAM);
    if rng.random_bool(0.5) {
        return;
    }
    for (pool, _) in &mut setup.pools {
        pool.grow = rng.random_bool(0.3);
        if rng.random_bool(0.1) {
            pool.consolidate = Consolidate::Never;
        }
        for offering in &mut pool.offerings {
            let capacity = ["on-demand", "reserved", "spot"][rng.random_range(0..3)];
            offering.capacity_type = capacity.into();
        }
    }
    if let Some((first, model)) = setup.pools.first().cloned()
        && rng.random_bool(0.6)
    {
        setup.pools.push((smaller(rng, &first), model));
    }
}

/// A pool like another with nodes of half the size, for somewhat more or less than half the price.
fn smaller(rng: &mut ChaCha8Rng, of: &PoolSpec) -> PoolSpec {
    let part = rng.random_range(0.3..0.7);
    let mut offerings = of.offerings.clone();
    for offering in &mut offerings {
        offering.instance_type = "small".into();
        offering.gpus = (offering.gpus / 2).max(1);
        offering.price = Money(((offering.price.0 as f64 * part) as i64).max(1));
        let halves = offering.allocatable.iter().map(|(name, amount)| (name.clone(), amount / 2));
        offering.allocatable = halves.collect::<BTreeMap<_, _>>();
    }
    PoolSpec {
        name: "small".into(),
        tier: of.tier.clone(),
        offerings,
        limits: PoolLimits { nodes: Some(rng.random_range(1..20)), ..PoolLimits::default() },
        idle_after: Span::mins(rng.random_range(1..30)),
        grow: rng.random_bool(0.3),
        ..PoolSpec::default()
    }
}
