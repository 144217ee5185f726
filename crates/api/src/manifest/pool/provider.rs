//! Reads the provider that boots a pool's nodes.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use muster_core::constraint::{Labels, Taint};
use muster_core::pool::OfferingSpec;

use crate::manifest::gang::constraints::taints;
use crate::manifest::pool::simulated;
use crate::manifest::pool::simulated::SimulatedCloud;
use crate::provisioning::CLASS;
use crate::read::finding::{Finding, Mark};
use crate::yaml::fields::Fields;
use crate::yaml::hint::{did_you_mean, listed};
use crate::yaml::names::{KEY_RULE, NAME_RULE, is_key, is_name};
use crate::yaml::value::Value;

pub(crate) const PROVIDERS: [&str; 4] = ["simulated", "karpenter", "provisioningRequest", "local"];

/// The provider that boots a pool's nodes.
#[derive(Clone, PartialEq, Debug)]
pub enum Provider {
    /// A simulated cloud, with the delays and failures of a real one. No machine is booted.
    Simulated(SimulatedCloud),
    /// Karpenter, with one NodeClaim per node.
    Karpenter(Karpenter),
    /// An autoscaler, with one ProvisioningRequest for all nodes of one kind that an order lacks.
    ProvisioningRequest(Autoscaler),
    /// The machine Muster runs on.
    Local,
}

/// How Karpenter is used.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Karpenter {
    /// The node class of the NodeClaims.
    pub node_class_ref: NodeClassRef,
    /// Taints that new nodes have until a component on them is set up.
    pub startup_taints: Vec<Taint>,
    /// Extended resources that NodeClaims do not request, because Karpenter does not know that its machines have them.
    pub resources_not_requested: Vec<Arc<str>>,
}

/// How an autoscaler is used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Autoscaler {
    /// The class of the ProvisioningRequests, which determines the autoscaler that serves them and how.
    pub class: Arc<str>,
    /// The parameters of the ProvisioningRequests, as the class defines them.
    pub parameters: BTreeMap<Arc<str>, Arc<str>>,
}

impl Default for Autoscaler {
    fn default() -> Self {
        Self { class: AUTOSCALER_CLASS.into(), parameters: BTreeMap::new() }
    }
}

/// The class by which Cluster Autoscaler creates nodes for all pods of a request, or for none.
pub const AUTOSCALER_CLASS: &str = "best-effort-atomic-scale-up.autoscaling.x-k8s.io";
/// The class by which it only checks for free capacity.
const CHECK_CAPACITY_CLASS: &str = "check-capacity.autoscaling.x-k8s.io";
/// The largest number of parameters of a request, and the largest length of each.
const MAX_PARAMETERS: usize = 100;
const PARAMETER_RULE: &str = "must be at most 255 long";

/// A reference to a Karpenter node class.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
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

/// Reads `spec.provider`: a mapping with one key that names the provider, or a simulated cloud when absent. Also
/// returns where each scripted fault of a simulated cloud is written.
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
        "karpenter" => plain(Provider::Karpenter(karpenter(inner))),
        "provisioningRequest" => plain(Provider::ProvisioningRequest(autoscaler(inner))),
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

fn autoscaler(value: &Value<'_>) -> Autoscaler {
    let mut read = Autoscaler::default();
    let Some(fields) = value.optional_fields() else { return read };
    if let Some(value) = fields.get("className")
        && let Some(class) = value.text_with(is_name, NAME_RULE)
    {
        match class {
            CLASS => value.error("is the class that Muster itself serves: it would ask itself"),
            CHECK_CAPACITY_CLASS => value.warn("requests of this class never make a node"),
            _ => {}
        }
        read.class = class.into();
    }
    if let Some(value) = fields.get("parameters") {
        let pairs = value.pairs().unwrap_or_default();
        if pairs.len() > MAX_PARAMETERS {
            value.error(format!("must be at most {MAX_PARAMETERS}, not {}", pairs.len()));
        }
        for (key, value) in pairs {
            if let Some(text) = value.text_with(|text| text.len() <= 255, PARAMETER_RULE) {
                read.parameters.insert(key.into(), text.into());
            }
        }
    }
    fields.done();
    read
}

/// Nodes of an autoscaler are matched to offerings by their labels. Where two offerings have the same labels, a node
/// that was requested for one may be taken for the other.
pub(crate) fn check_labels(provider: &Provider, offerings: &[OfferingSpec], spec: &Fields<'_>) {
    let Provider::ProvisioningRequest(_) = provider else { return };
    let Some(list) = spec.get("offerings").filter(|_| !offerings.is_empty()) else { return };
    let values = list.items("offering").unwrap_or_default();
    let shown: Vec<Labels> = offerings.iter().map(OfferingSpec::shown_labels).collect();
    for (at, value) in values.iter().enumerate().take(shown.len()) {
        if let Some(before) = shown[..at].iter().position(|other| *other == shown[at]) {
            value.warn(format!(
                "its nodes look like those of offerings[{before}]: say in `labels` what tells them apart"
            ));
        }
    }
}

fn karpenter(value: &Value<'_>) -> Karpenter {
    let mut read = Karpenter::default();
    let Some(fields) = value.fields() else { return read };
    read.startup_taints = taints(&fields, "startupTaints");
    for value in fields.list("resourcesNotRequested") {
        if let Some(name) = value.text_with(is_key, KEY_RULE) {
            read.resources_not_requested.push(name.into());
        }
    }
    if let Some(class) = fields.need("nodeClassRef").and_then(|value| value.fields()) {
        let part = |name| class.need(name).and_then(|value| value.text()).unwrap_or_default();
        read.node_class_ref = NodeClassRef {
            group: part("group").into(),
            kind: part("kind").into(),
            name: part("name").into(),
        };
        class.done();
    }
    fields.done();
    read
}

/// Reports scripted faults that would never occur: in a zone without offerings, or a second one for the same claim.
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
