//! Nodes as the planner sees them: what is left of each beside pods that others have put there.

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

/// Where vendors write what a node's GPUs are.
const MODEL: [&str; 3] =
    ["nvidia.com/gpu.product", "karpenter.k8s.aws/instance-gpu-name", "muster.sh/gpu-model"];
/// Their memory, in MiB.
const MEMORY_MIB: [&str; 2] = ["nvidia.com/gpu.memory", "karpenter.k8s.aws/instance-gpu-memory"];

/// By this a pod is known that a kubelet runs out of a file of its own.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// What pods of others take of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Foreign {
    amounts: NamedAmounts,
    /// GPUs, in thousandths.
    gpu_milli: u64,
    /// Whether one of them would miss the node.
    stays: bool,
    /// Whether some of it is taken by members of gangs, beyond the seats of these.
    is_beyond: bool,
}

impl Foreign {
    /// Counts one more pod.
    pub(crate) fn add(&mut self, request: &Request) {
        for (name, amount) in &request.amounts {
            add(&mut self.amounts, name, *amount);
        }
        self.gpu_milli = self.gpu_milli.saturating_add(request.gpu_milli());
    }

    /// Counts what members of a gang take beyond what it has seats for. What was tokens is not asked for by pods.
    pub(crate) fn add_beyond(&mut self, takes: &Self, seated: &Self) {
        for (name, amount) in &takes.amounts {
            let more = amount.saturating_sub(seated.amounts.get(name).copied().unwrap_or(0));
            if more > 0 {
                add(&mut self.amounts, name, more);
                self.is_beyond = true;
            }
        }
        let more = takes.gpu_milli.saturating_sub(seated.gpu_milli);
        self.gpu_milli = self.gpu_milli.saturating_add(more);
        self.is_beyond |= more > 0;
        self.stays |= self.is_beyond;
    }

    /// Whether members of gangs take more than they have seats for.
    pub(crate) fn is_beyond(&self) -> bool {
        self.is_beyond
    }

    /// Whether one more pod would miss the node: not one that is there because the node is, and goes with it.
    pub(crate) fn stay(&mut self, pod: &Pod) {
        let owners = pod.metadata.owner_references.iter().flatten();
        let of_node = owners.into_iter().any(|owner| matches!(&*owner.kind, "DaemonSet" | "Node"));
        let annotations = pod.metadata.annotations.as_ref();
        let of_file = annotations.is_some_and(|all| all.contains_key(MIRROR));
        self.stays |= !of_node && !of_file;
    }

    /// Whether any of the node's GPUs is taken.
    pub(crate) fn takes_gpus(&self) -> bool {
        self.gpu_milli > 0
    }

    /// Counts what a pod takes of tokens.
    pub(crate) fn add_tokens(&mut self, tokens: &[(Arc<str>, u64)]) {
        for (name, amount) in tokens {
            add(&mut self.amounts, name, *amount);
        }
    }
}

/// What is beyond counting is all there is.
fn add(amounts: &mut NamedAmounts, name: &Arc<str>, more: u64) {
    let sum = amounts.entry(name.clone()).or_default();
    *sum = sum.saturating_add(more);
}

/// A node with these tokens, and without what others take of it. What cannot be understood in it is not used; a taint of an
/// effect that is not known keeps members off.
pub(crate) fn node_spec(
    node: &Node,
    tokens: NamedAmounts,
    foreign: &Foreign,
    claim: Option<(ClaimId, Option<&GpuKind>)>,
    names: &GpuNames,
) -> NodeSpec {
    let name: Arc<str> = node.metadata.name.as_deref().unwrap_or_default().into();
    // The number of its claim, which no other node has, would make every node one of its kind.
    let labels = node.metadata.labels.iter().flatten().filter(|(key, _)| *key != CLAIM);
    let labels: Labels = labels.map(shared).collect();
    let (mut allocatable, gpus) = amounts(node, names);
    allocatable.extend(tokens);
    for (resource, taken) in &foreign.amounts {
        let Some(free) = allocatable.get_mut(resource) else { continue };
        let had = (*free).min(*taken);
        *free -= had;
        if claim.is_some() && is_extended(resource) {
            // They are there, as was asked for, although members cannot have them.
            allocatable.insert(of_others(resource), had);
        }
    }
    let promised = claim.and_then(|(_, kind)| kind);
    let gpu = gpus.map(|(resource, count)| {
        let mut kind = kind(resource, &labels);
        if let Some(promised) = promised.filter(|promised| promised.resource == kind.resource) {
            kind.clone_from(promised);
        }
        (kind, count)
    });
    let taken = u16::try_from(foreign.gpu_milli.div_ceil(1_000)).unwrap_or(u16::MAX);
    let shown = gpu.as_ref().map_or(0, |(_, count)| *count);
    let gpus = shown.saturating_sub(taken);
    if shown > gpus {
        allocatable.insert(TAKEN_GPUS.into(), u64::from(shown - gpus)); // the same
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
        others: foreign.stays,
    }
}

fn shared((key, value): (&String, &String)) -> (Arc<str>, Arc<str>) {
    (key.as_str().into(), value.as_str().into())
}

type Gpus = Option<(Arc<str>, u16)>;

/// What a node offers: amounts, and its GPUs. Of several kinds the one with most devices is meant.
fn amounts(node: &Node, names: &GpuNames) -> (NamedAmounts, Gpus) {
    let mut amounts = NamedAmounts::new();
    let mut gpus: Gpus = None;
    for (name, text) in &node.status.allocatable {
        let odd = |why: &dyn std::fmt::Display| {
            let node = node.metadata.name.as_deref().unwrap_or_default();
            tracing::warn!(node, resource = name, text, %why, "what a node offers makes no sense");
        };
        let quantity: Quantity = match text.parse() {
            Ok(quantity) => quantity,
            Err(why) => {
                odd(&why);
                continue;
            }
        };
        if names.is_gpu(name) {
            let Some(count) = quantity.ceil_units() else {
                odd(&"no number of GPUs");
                continue;
            };
            // Shared devices are shown as many. What is beyond what can be told apart is not used.
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

fn kind(resource: Arc<str>, labels: &Labels) -> GpuKind {
    let first = |keys: &[&str]| keys.iter().find_map(|key| labels.get(*key).cloned());
    let mib = first(&MEMORY_MIB).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    let model = first(&MODEL).unwrap_or_else(|| "".into());
    GpuKind { resource, model, memory: mib << 20 }
}

/// The taints that keep members off. Those that come and go with readiness count as not being ready.
pub(crate) fn taints(node: &Node) -> Vec<Taint> {
    let mut taints = Vec::new();
    for taint in node.spec.taints.iter().filter(|taint| !taint.is_passing()) {
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
