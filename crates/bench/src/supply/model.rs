//! The offerings of the comparison and the models of their clouds, with the sources of all figures.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_core::constraint::Labels;
use muster_core::device::GpuKind;
use muster_core::money::Money;
use muster_core::pool::{OfferingSpec, PoolLimits, PoolSpec};
use muster_core::resource::{CPU, MEMORY};
use muster_core::time::Span;
use muster_sim::cloud::{CloudModel, StockModel};

/// The resource that members request.
pub(crate) const GPU: &str = "nvidia.com/gpu";

/// One type of machine.
struct Type {
    name: &'static str,
    gpus: u16,
    cores: u64,
    gib: u64,
    /// On demand, per hour, in dollars.
    price: f64,
    /// The share of time that a zone is out of stock.
    out: f64,
}

/// AWS's p3 family, V100s of 16 GiB. Sizes and prices as in the artifact of Eva (EuroSys 2025), us-east-1.
///
/// No provider publishes how often on-demand GPUs are out of stock. Spot traces of the same family show that larger
/// machines are rarer; 5, 20 and 40 % are what the notes on provisioning suggest for common to scarce GPUs.
const TYPES: [Type; 3] = [
    Type { name: "p3.2xlarge", gpus: 1, cores: 8, gib: 61, price: 3.06, out: 0.05 },
    Type { name: "p3.8xlarge", gpus: 4, cores: 32, gib: 244, price: 12.24, out: 0.20 },
    Type { name: "p3.16xlarge", gpus: 8, cores: 64, gib: 488, price: 24.48, out: 0.40 },
];

/// Two regions of three zones; a p3 costs the same in both.
const ZONES: [(&str, &str); 6] = [
    ("us-east-1", "us-east-1a"),
    ("us-east-1", "us-east-1b"),
    ("us-east-1", "us-east-1c"),
    ("us-west-2", "us-west-2a"),
    ("us-west-2", "us-west-2b"),
    ("us-west-2", "us-west-2c"),
];

/// From request to ready: launch 150 s, join 45 s, GPUs 60 s, each a median (log-normal, sigma 0.35).
const BOOT: Span = Span::secs(255);
/// Machines that never join: 0.4 to 2 % was reported.
const BOOT_FAILED: f64 = 0.01;
/// Nodes that lack a GPU for ever: 0.2 to 0.5 %.
const GPUS_MISSING: f64 = 0.0035;
/// Llama 3's training lost one 8-GPU node in 6,300 hours. Failures go by the work of GPUs, so that every strategy loses the
/// same machines under the same gangs, whatever it has bought.
pub(crate) const WEAR: Span = Span::hours(8 * 6_300);
/// Outages of one zone lasted 48 to 215 minutes on average.
const MEAN_OUTAGE_HOURS: f64 = 2.0;
/// No run comes near it: the comparison is not about limits.
const NODES: u32 = 4_000;

/// How long Muster keeps an unused node; the rivals do the same unless their own default serves them better.
pub(crate) const IDLE_AFTER: Span = Span::mins(10);

/// The pools, one per type of machine, because stock-outs are a property of the type; to the planner they are one
/// list of offerings. `idle_after` holds for all.
pub(crate) fn pools(idle_after: Span) -> Vec<(PoolSpec, CloudModel)> {
    TYPES.iter().map(|kind| (pool(kind, idle_after), cloud(kind))).collect()
}

/// A pool of the largest machines in one zone that is never out of stock, and whose machines never fail: only its target
/// size decides which gangs find ready nodes.
pub(crate) fn endless(idle_after: Span) -> (PoolSpec, CloudModel) {
    let mut pool = pool(&TYPES[2], idle_after);
    pool.offerings.truncate(1);
    (pool, CloudModel::default())
}

fn pool(kind: &Type, idle_after: Span) -> PoolSpec {
    PoolSpec {
        name: kind.name.into(),
        tier: "on-demand".into(),
        offerings: ZONES.iter().map(|(region, zone)| offering(kind, region, zone)).collect(),
        limits: PoolLimits { nodes: Some(NODES), ..PoolLimits::default() },
        idle_after,
        ..PoolSpec::default()
    }
}

fn offering(kind: &Type, region: &str, zone: &str) -> OfferingSpec {
    let label = |key: &str, value: &str| (Arc::from(key), Arc::from(value));
    OfferingSpec {
        instance_type: kind.name.into(),
        zone: zone.into(),
        region: region.into(),
        capacity_type: "on-demand".into(),
        price: Money::from_units(kind.price).expect("a price"),
        allocatable: BTreeMap::from([
            (CPU.into(), kind.cores * 1_000),
            (MEMORY.into(), kind.gib << 30),
        ]),
        gpu: Some(GpuKind { resource: GPU.into(), model: "V100".into(), memory: 16 << 30 }),
        gpus: kind.gpus,
        labels: Labels::from([
            label("topology.kubernetes.io/region", region),
            label("topology.kubernetes.io/zone", zone),
        ]),
        taints: Vec::new(),
        max: None,
        boot_time: BOOT,
        start_time: None,
    }
}

fn cloud(kind: &Type) -> CloudModel {
    CloudModel {
        boot_failed: BOOT_FAILED,
        gpus_missing: GPUS_MISSING,
        stock: Some(StockModel {
            mean_up: Span::from_secs_f64(mean_up_hours(kind.out) * 3_600.0),
            mean_down: Span::from_secs_f64(MEAN_OUTAGE_HOURS * 3_600.0),
        }),
        ..CloudModel::default()
    }
}

/// Mean time in stock, for a zone that is out of stock for this share of the time.
fn mean_up_hours(out: f64) -> f64 {
    MEAN_OUTAGE_HOURS * (1.0 - out) / out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_costs_the_same_in_every_size() {
        for kind in TYPES {
            assert!((kind.price / f64::from(kind.gpus) - 3.06).abs() < 1e-9, "{}", kind.name);
        }
    }
}
