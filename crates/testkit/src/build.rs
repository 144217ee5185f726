//! Builders for specs.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_core::constraint::{Constraints, Labels};
use muster_core::device::{GpuKind, GpuRequest, WHOLE};
use muster_core::gang::{Closeness, Disruption, GangSpec, Provisioning, Request, RoleSpec};
use muster_core::money::Money;
use muster_core::node::NodeSpec;
use muster_core::pool::{OfferingSpec, PoolLimits, PoolSpec};
use muster_core::resource::{CPU, MEMORY, NamedAmounts};
use muster_core::time::Span;

/// The GPU vendor in all tests.
pub const GPU: &str = "nvidia.com/gpu";

/// Labels from pairs.
pub fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(key, value)| (Arc::from(*key), Arc::from(*value))).collect()
}

/// Cores and GiB in base units.
pub fn amounts(cores: u64, gib: u64) -> NamedAmounts {
    BTreeMap::from([(CPU.into(), cores * 1_000), (MEMORY.into(), gib << 30)])
}

/// An H100 of 80 GiB.
pub fn h100() -> GpuKind {
    GpuKind { resource: GPU.into(), model: "H100".into(), memory: 80 << 30 }
}

/// A ready node with this many H100s, 100 cores and 1000 GiB, at these labels.
pub fn node(name: &str, gpus: u16, at: &[(&str, &str)]) -> NodeSpec {
    NodeSpec {
        name: name.into(),
        labels: labels(at),
        taints: Vec::new(),
        allocatable: amounts(100, 1_000),
        gpu: (gpus > 0).then(h100),
        gpus,
        ready: true,
        claim: None,
        others: false,
    }
}

/// A rigid role: `count` members of `gpus` whole GPUs and one core each.
pub fn role(name: &str, count: u32, gpus: u16) -> RoleSpec {
    let gpu = (gpus > 0).then(|| GpuRequest { resource: GPU.into(), count: gpus, share: WHOLE });
    RoleSpec {
        name: name.into(),
        min: count,
        max: count,
        request: Request { amounts: amounts(1, 1), gpu },
        constraints: Constraints::default(),
        spread: Vec::new(),
    }
}

/// A gang of one rigid role.
pub fn gang(name: &str, count: u32, gpus: u16) -> GangSpec {
    GangSpec {
        name: name.into(),
        queue: "default".into(),
        user: "".into(),
        priority: 0,
        priority_is_declared: false,
        roles: vec![role("worker", count, gpus)],
        closeness: None,
        provisioning: Provisioning::default(),
        expected_duration: None,
        deadline: None,
        cost_of_waiting: None,
        disruption: Disruption::default(),
        scaling: Default::default(),
    }
}

/// The same gang, all members within one domain of a level.
pub fn within(mut gang: GangSpec, level: &str) -> GangSpec {
    gang.closeness = Some(Closeness::Required(level.into()));
    gang
}

/// An offering of 8-GPU nodes in a zone.
pub fn offering(zone: &str, price: f64) -> OfferingSpec {
    OfferingSpec {
        instance_type: "gpu8".into(),
        zone: zone.into(),
        region: "r".into(),
        capacity_type: "on-demand".into(),
        price: Money::from_units(price).expect("a price"),
        allocatable: amounts(100, 1_000),
        gpu: Some(h100()),
        gpus: 8,
        labels: labels(&[("topology.kubernetes.io/zone", zone)]),
        taints: Vec::new(),
        max: None,
        boot_time: Span::mins(3),
        start_time: None,
    }
}

/// A pool of these offerings without limits.
pub fn pool(name: &str, offerings: Vec<OfferingSpec>) -> PoolSpec {
    PoolSpec {
        name: name.into(),
        tier: "on-demand".into(),
        offerings,
        limits: PoolLimits::default(),
        idle_after: Span::mins(10),
        ..PoolSpec::default()
    }
}
