//! A node as the planner sees it: its allocatable resources minus what pods outside the seats of gangs use.
//!
//! Extended resources and GPUs that foreign pods use on the node of a claim are recorded beside the free ones: they exist, as
//! its offering promised, although members cannot have them.

use std::sync::Arc;

use muster_api::pod::GpuNames;
use muster_core::constraint::{Effect, Labels, Taint};
use muster_core::device::{GpuKind, MAX_DEVICES};
use muster_core::gang::Request;
use muster_core::id::ClaimId;
use muster_core::node::NodeSpec;
use muster_core::quantity::Quantity;
use muster_core::resource::{NamedAmounts, TAKEN_GPUS, base_units, is_extended, of_others};

use crate::objects::node::Node;
use crate::objects::pod::Pod;
use crate::provision::karpenter::CLAIM;

/// The labels in which vendors write the model of a node's GPUs.
const MODEL: [&str; 3] =
    ["nvidia.com/gpu.product", "karpenter.k8s.aws/instance-gpu-name", "muster.sh/gpu-model"];
/// The labels with the memory of one GPU, in MiB.
const MEMORY_MIB: [&str; 2] = ["nvidia.com/gpu.memory", "karpenter.k8s.aws/instance-gpu-memory"];

/// The annotation of a static pod, which a kubelet runs from a file.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// What pods use of one node outside the seats of gangs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ForeignUsage {
    amounts: NamedAmounts,
    /// GPUs, in thousandths.
    gpu_milli: u64,
    /// Whether one of the pods keeps the node from being idle.
    keeps_node: bool,
    /// Whether members of gangs use some of it, beyond their seats.
    has_excess: bool,
}

impl ForeignUsage {
    /// Adds the requests of one pod.
    pub(crate) fn add(&mut self, request: &Request) {
        for (name, amount) in &request.amounts {
            add(&mut self.amounts, name, *amount);
        }
        self.gpu_milli = self.gpu_milli.saturating_add(request.gpu_milli());
    }

    /// Adds what members of a gang use beyond its seats. Pods do not request tokens, so these are not compared.
    pub(crate) fn add_excess(&mut self, used: &Self, seated: &Self) {
        for (name, amount) in &used.amounts {
            let more = amount.saturating_sub(seated.amounts.get(name).copied().unwrap_or(0));
            if more > 0 {
                add(&mut self.amounts, name, more);
                self.has_excess = true;
            }
        }
        let more = used.gpu_milli.saturating_sub(seated.gpu_milli);
        self.gpu_milli = self.gpu_milli.saturating_add(more);
        self.has_excess |= more > 0;
        self.keeps_node |= self.has_excess;
    }

    /// Whether members of gangs use more than their seats.
    pub(crate) fn has_excess(&self) -> bool {
        self.has_excess
    }

    /// Keeps the node from being idle for this pod, unless the pod exists only because the node does: a DaemonSet's or a static
    /// pod.
    pub(crate) fn count_as_user(&mut self, pod: &Pod) {
        let owners = pod.metadata.owner_references.iter().flatten();
        let of_node = owners.into_iter().any(|owner| matches!(&*owner.kind, "DaemonSet" | "Node"));
        let annotations = pod.metadata.annotations.as_ref();
        let of_file = annotations.is_some_and(|all| all.contains_key(MIRROR));
        self.keeps_node |= !of_node && !of_file;
    }

    /// Whether any of the node's GPUs is used.
    pub(crate) fn uses_gpus(&self) -> bool {
        self.gpu_milli > 0
    }

    /// Adds the tokens that a pod uses.
    pub(crate) fn add_tokens(&mut self, tokens: &[(Arc<str>, u64)]) {
        for (name, amount) in tokens {
            add(&mut self.amounts, name, *amount);
        }
    }
}

/// Adds an amount. A sum that overflows saturates.
fn add(amounts: &mut NamedAmounts, name: &Arc<str>, more: u64) {
    let sum = amounts.entry(name.clone()).or_default();
    *sum = sum.saturating_add(more);
}

/// The node with these tokens, minus what foreign pods use. Invalid resources are ignored; a taint with an unknown effect counts
/// as `NoSchedule`.
pub(crate) fn node_spec(
    node: &Node,
    tokens: NamedAmounts,
    foreign: &ForeignUsage,
    claim: Option<(ClaimId, Option<&GpuKind>)>,
    names: &GpuNames,
) -> NodeSpec {
    let name: Arc<str> = node.metadata.name.as_deref().unwrap_or_default().into();
    // The claim's number is unique, and would make every node a class of its own.
    let labels = node.metadata.labels.iter().flatten().filter(|(key, _)| *key != CLAIM);
    let labels: Labels = labels.map(shared).collect();
    let (mut allocatable, gpus) = self::allocatable(node, names);
    allocatable.extend(tokens);
    for (resource, taken) in &foreign.amounts {
        let Some(free) = allocatable.get_mut(resource) else { continue };
        let had = (*free).min(*taken);
        *free -= had;
        if claim.is_some() && is_extended(resource) {
            // They exist, as the offering promised, although members cannot have them.
            allocatable.insert(of_others(resource), had);
        }
    }
    let promised = claim.and_then(|(_, kind)| kind);
    let gpu = gpus.map(|(resource, count)| {
        let mut kind = gpu_kind(resource, &labels);
        if let Some(promised) = promised.filter(|promised| promised.resource == kind.resource) {
            kind.clone_from(promised);
        }
        (kind, count)
    });
    let taken = u16::try_from(foreign.gpu_milli.div_ceil(1_000)).unwrap_or(u16::MAX);
    let shown = gpu.as_ref().map_or(0, |(_, count)| *count);
    let gpus = shown.saturating_sub(taken);
    if shown > gpus {
        allocatable.insert(TAKEN_GPUS.into(), u64::from(shown - gpus)); // likewise
    }
    NodeSpec {
        name,
        labels,
        taints: taints(node),
        allocatable,
        gpu: gpu.map(|(kind, _)| kind),
        gpus,
        ready: node.is_ready(),
        claim: claim.map(|(claim, _)| claim),
        others: foreign.keeps_node,
    }
}

fn shared((key, value): (&String, &String)) -> (Arc<str>, Arc<str>) {
    (key.as_str().into(), value.as_str().into())
}

type Gpus = Option<(Arc<str>, u16)>;

/// The allocatable amounts and GPUs of a node. Of several GPU resources the one with most devices counts.
fn allocatable(node: &Node, names: &GpuNames) -> (NamedAmounts, Gpus) {
    let mut amounts = NamedAmounts::new();
    let mut gpus: Gpus = None;
    for (name, text) in &node.status.allocatable {
        let warn = |why: &dyn std::fmt::Display| {
            let node = node.metadata.name.as_deref().unwrap_or_default();
            tracing::warn!(node, resource = name, text, %why, "an allocatable quantity is invalid and ignored");
        };
        let quantity: Quantity = match text.parse() {
            Ok(quantity) => quantity,
            Err(why) => {
                warn(&why);
                continue;
            }
        };
        if names.is_gpu(name) {
            let Some(count) = quantity.ceil_units() else {
                warn(&"not a number of GPUs");
                continue;
            };
            // Shared devices are shown as several. Devices beyond the maximum cannot be told apart and are not used.
            let count = u16::try_from(count).unwrap_or(u16::MAX).min(MAX_DEVICES as u16);
            if gpus.as_ref().is_none_or(|(_, most)| count > *most) {
                gpus = Some((name.as_str().into(), count));
            }
        } else if let Some(amount) = base_units(name, quantity) {
            amounts.insert(name.as_str().into(), amount);
        }
    }
    (amounts, gpus)
}

fn gpu_kind(resource: Arc<str>, labels: &Labels) -> GpuKind {
    let first = |keys: &[&str]| keys.iter().find_map(|key| labels.get(*key).cloned());
    let mib = first(&MEMORY_MIB).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    let model = first(&MODEL).unwrap_or_else(|| "".into());
    GpuKind { resource, model, memory: mib << 20 }
}

/// The taints that members have to tolerate. Those that come and go with readiness count as not ready instead.
pub(crate) fn taints(node: &Node) -> Vec<Taint> {
    let mut taints = Vec::new();
    for taint in node.spec.taints.iter().filter(|taint| !taint.is_not_ready()) {
        let effect = match &*taint.effect {
            "PreferNoSchedule" => Effect::PreferNoSchedule,
            "NoExecute" => Effect::NoExecute,
            _ => Effect::NoSchedule,
        };
        let (key, value) = (taint.key.as_str().into(), taint.value.as_str().into());
        taints.push(Taint { key, value, effect });
    }
    taints
}
