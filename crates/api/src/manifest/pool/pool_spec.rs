//! Reads `kind: Pool`.

use std::sync::Arc;

use muster_core::pool::{PoolLimits, PoolSpec};
use muster_core::time::Span;

use crate::manifest::pool::provider;
use crate::manifest::pool::provider::Provider;
use crate::manifest::pool::{offering, proactive};
use crate::read::finding::Mark;
use crate::read::object::Metadata;
use crate::yaml::fields::Fields;

/// How long an idle node is kept by default: two boot times, so that the next gang finds it.
pub(crate) const IDLE_AFTER: Span = Span::mins(10);

/// A pool as written, with its provider.
#[derive(Clone, PartialEq, Debug)]
pub struct PoolManifest {
    /// The spec that the planner uses.
    pub spec: PoolSpec,
    /// The provider that boots its nodes.
    pub provider: Provider,
}

/// A pool and the field that is checked against other objects.
#[derive(Debug)]
pub(crate) struct DeclaredPool {
    pub(crate) pool: PoolManifest,
    pub(crate) name: Mark,
}

/// Reads a pool's spec.
pub(crate) fn read(metadata: Metadata<'_>, spec: &Fields<'_>) -> DeclaredPool {
    let (provider, script) = provider::read(spec);
    let tier: Arc<str> =
        spec.need("tier").and_then(|value| value.text()).unwrap_or_default().into();
    let offerings = offering::read_all(spec, &provider, &tier);
    spec.report(provider::check_script(&provider, &script, &offerings));
    provider::check_labels(&provider, &offerings, spec);
    let pool = PoolSpec {
        name: metadata.name.into(),
        tier,
        offerings,
        limits: limits(spec),
        idle_after: spec.span("idleAfter").unwrap_or(IDLE_AFTER),
        ahead: proactive::read(spec),
        consolidate: proactive::consolidate(spec),
        expire_after: spec.span_above_zero("expireAfter"),
        patience: proactive::timeouts(spec),
        grow: spec.get("buyForGrowth").and_then(|value| value.flag()).unwrap_or(false),
    };
    DeclaredPool { pool: PoolManifest { spec: pool, provider }, name: metadata.mark }
}

fn limits(spec: &Fields<'_>) -> PoolLimits {
    let Some(fields) = spec.get("limits").and_then(|value| value.fields()) else {
        return PoolLimits::default();
    };
    let limits = PoolLimits {
        nodes: fields.get("nodes").and_then(|value| value.count(0..=u32::MAX)),
        gpus: fields.get("gpus").and_then(|value| value.count(0..=u32::MAX)),
        hourly_spend: fields.get("hourlySpend").and_then(|value| value.money()),
    };
    fields.done();
    limits
}
