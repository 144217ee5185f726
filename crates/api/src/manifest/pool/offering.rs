//! Reads the offerings of a pool.

use std::collections::HashMap;
use std::sync::Arc;

use muster_core::constraint::Labels;
use muster_core::pool::OfferingSpec;
use muster_core::time::Span;

use crate::manifest::amounts::supply;
use crate::manifest::gang::constraints::{labels, taints};
use crate::manifest::pool::provider::Provider;
use crate::manifest::pool::simulated::SimulatedCloud;
use crate::yaml::fields::Fields;
use crate::yaml::names::{VALUE_RULE, is_value};

/// The largest number of offerings of a pool: the number of an offering has 16 bits.
const MAX_OFFERINGS: usize = 10_000;

/// Reads `spec.offerings`. Only a pool of the machine itself may have none.
pub(crate) fn read_all(spec: &Fields<'_>, provider: &Provider, tier: &str) -> Vec<OfferingSpec> {
    let list = match provider {
        Provider::Local => spec.get("offerings"),
        _ => spec.need("offerings"),
    };
    let Some(list) = list else { return Vec::new() };
    let values = list.items("offering").unwrap_or_default();
    if values.len() > MAX_OFFERINGS {
        list.error(format!("must be at most {MAX_OFFERINGS} offerings, not {}", values.len()));
    }
    let boot_time = match provider {
        Provider::Simulated(cloud) => cloud.boot.sum(),
        _ => SimulatedCloud::default().boot.sum(),
    };
    let mut first: HashMap<[Arc<str>; 3], usize> = HashMap::new();
    let mut offerings = Vec::new();
    for (index, value) in values.iter().enumerate() {
        let Some(fields) = value.fields() else { continue };
        let offering = read(&fields, boot_time, tier);
        fields.done();
        let OfferingSpec { instance_type, zone, capacity_type, .. } = &offering;
        let what = [instance_type, zone, capacity_type].map(Arc::clone);
        // Without these the offering is incomplete, which is already a finding.
        let complete = !instance_type.is_empty() && !zone.is_empty();
        match first.get(&what).filter(|_| complete) {
            Some(before) => value.error(format!(
                "is of the same instance type, zone and capacity type as offerings[{before}]"
            )),
            None => drop(first.insert(what, index)),
        }
        offerings.push(offering);
    }
    offerings
}

/// Tiers that are also capacity types.
const PAID_LIKE: [&str; 3] = ["on-demand", "reserved", "spot"];

/// The capacity type of an offering that gives none: the pool's tier, if that is a capacity type.
fn paid_like(tier: &str) -> &str {
    PAID_LIKE.into_iter().find(|one| *one == tier).unwrap_or_default()
}

fn read(fields: &Fields<'_>, boot_time: Span, tier: &str) -> OfferingSpec {
    let value = |name| fields.get(name)?.text_with(is_value, VALUE_RULE);
    // An API server writes the default of the definition, which is empty.
    let capacity_type = value("capacityType").filter(|text| !text.is_empty());
    let need = |name| fields.need(name)?.text_with(is_value, VALUE_RULE);
    let (allocatable, gpu, gpus) = supply(fields);
    let mut offering = OfferingSpec {
        instance_type: need("instanceType").unwrap_or_default().into(),
        zone: need("zone").unwrap_or_default().into(),
        region: value("region").unwrap_or_default().into(),
        capacity_type: capacity_type.unwrap_or_else(|| paid_like(tier)).into(),
        price: fields.get("price").and_then(|value| value.money()).unwrap_or_default(),
        allocatable,
        gpu,
        gpus,
        labels: labels(fields, "labels"),
        taints: taints(fields, "taints"),
        max: fields.get("max").and_then(|value| value.count(1..=u32::MAX)),
        boot_time: fields.span("bootTime").unwrap_or(boot_time),
        start_time: fields.span_above_zero("startTime"),
    };
    offering.labels = with_well_known(&offering);
    offering
}

/// The labels of the offering with the well-known ones, which every node has whether or not the operator lists them.
fn with_well_known(offering: &OfferingSpec) -> Labels {
    let mut labels = offering.labels.clone();
    for (key, value) in [
        ("node.kubernetes.io/instance-type", &offering.instance_type),
        ("topology.kubernetes.io/zone", &offering.zone),
        ("topology.kubernetes.io/region", &offering.region),
        ("muster.sh/capacity-type", &offering.capacity_type),
    ] {
        if !value.is_empty() {
            labels.entry(key.into()).or_insert_with(|| value.clone());
        }
    }
    labels
}
