//! Who boots a pool's nodes.

use std::collections::HashSet;
use std::sync::Arc;

use muster_core::pool::OfferingSpec;

use crate::fields::Fields;
use crate::finding::{Finding, Mark};
use crate::hint::{did_you_mean, listed};
use crate::simulated::{self, SimulatedCloud};
use crate::value::Value;

pub(crate) const PROVIDERS: [&str; 4] = ["simulated", "karpenter", "provisioningRequest", "local"];

/// Who boots a pool's nodes.
#[derive(Clone, PartialEq, Debug)]
pub enum Provider {
    /// Nobody: nodes are played, with the delays and failures of a cloud.
    Simulated(SimulatedCloud),
    /// Karpenter, asked with one NodeClaim per node.
    Karpenter {
        /// The node class its claims name.
        node_class_ref: NodeClassRef,
    },
    /// The cluster autoscaler, asked with ProvisioningRequests.
    ProvisioningRequest,
    /// The machine Muster runs on.
    Local,
}

/// A reference to a Karpenter node class.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeClassRef {
    /// Its API group, such as `karpenter.k8s.aws`.
    pub group: Arc<str>,
    /// Its kind, such as `EC2NodeClass`.
    pub kind: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

impl Default for Provider {
    fn default() -> Self {
        Self::Simulated(SimulatedCloud::default())
    }
}

/// Reads `spec.provider`: a mapping with one key that says who, or nothing for a simulated cloud. Also says
/// where each scripted fault of a simulated cloud is written.
pub(crate) fn read(spec: &Fields<'_>) -> (Provider, Vec<Mark>) {
    let plain = |provider| (provider, Vec::new());
    let Some(value) = spec.get("provider") else { return plain(Provider::default()) };
    let Some(pairs) = value.pairs() else { return plain(Provider::default()) };
    let [(name, inner)] = pairs.as_slice() else {
        value.error(format!("must have exactly one of {}", listed(PROVIDERS)));
        return plain(Provider::default());
    };
    match *name {
        "simulated" => {
            let (cloud, script) = simulated::read(inner);
            (Provider::Simulated(cloud), script)
        }
        "karpenter" => plain(karpenter(inner)),
        "provisioningRequest" => plain(nothing_inside(inner, Provider::ProvisioningRequest)),
        "local" => plain(nothing_inside(inner, Provider::Local)),
        other => {
            inner.error(format!("unknown provider{}", did_you_mean(other, PROVIDERS)));
            plain(Provider::default())
        }
    }
}

fn nothing_inside(value: &Value<'_>, provider: Provider) -> Provider {
    if let Some(fields) = value.optional_fields() {
        fields.done();
    }
    provider
}

fn karpenter(value: &Value<'_>) -> Provider {
    let mut node_class_ref = NodeClassRef { group: "".into(), kind: "".into(), name: "".into() };
    if let Some(fields) = value.fields() {
        if let Some(class) = fields.need("nodeClassRef").and_then(|value| value.fields()) {
            let part = |name| class.need(name).and_then(|value| value.text()).unwrap_or_default();
            node_class_ref = NodeClassRef {
                group: part("group").into(),
                kind: part("kind").into(),
                name: part("name").into(),
            };
            class.done();
        }
        fields.done();
    }
    Provider::Karpenter { node_class_ref }
}

/// Refuses scripted faults that would never come: in a zone no offering has, or for a claim already spoken for.
pub(crate) fn check_script(
    provider: &Provider,
    marks: &[Mark],
    offerings: &[OfferingSpec],
) -> Vec<Finding> {
    let Provider::Simulated(cloud) = provider else { return Vec::new() };
    let mut seen = HashSet::new();
    let mut findings = Vec::new();
    for (fault, mark) in cloud.script.iter().zip(marks) {
        let zone = &fault.zone;
        if !offerings.iter().any(|offering| offering.zone == *zone) {
            let hint = did_you_mean(zone, offerings.iter().map(|offering| &*offering.zone));
            findings.push(mark.error(format!("no offering is in zone `{zone}`{hint}")));
        }
        if !seen.insert((zone, fault.claim)) {
            findings.push(mark.error(format!("claim {} in `{zone}` fails already", fault.claim)));
        }
    }
    findings
}
