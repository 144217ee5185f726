//! What one pod takes of a node.
//!
//! The rule is Kubernetes' own: containers and sidecars run together, init containers one after the other beside
//! the sidecars that started before them, and the larger of the two counts. What the pod asks for as a whole
//! stands in for that sum, and the overhead comes on top. Every pod also takes one of the node's `pods`.

use std::collections::{BTreeMap, BTreeSet};

use muster_core::device::{GpuRequest, WHOLE};
use muster_core::gang::Request;
use muster_core::quantity::Quantity;
use muster_core::resource::is_gpu;

use crate::foreign::json::{Findings, count};
use crate::manifest::amounts::{GPU, MAX_AMOUNT, share};
use crate::pod::resources::Resources;
use crate::pod::spec::{Container, PodSpec};
use crate::pod::totals::{Totals, entries, listed};
use crate::yaml::value::join;

/// The resource every pod takes one of.
const PODS: &str = "pods";
/// What part of a device a pod wants, in the way of KAI: `0.5`.
const FRACTION: &str = "gpu-fraction";
/// Of how many devices it wants that part.
const FRACTION_DEVICES: &str = "gpu-fraction-num-devices";

/// Which resources are GPUs: all that are called `VENDOR/gpu`, and those named here.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GpuNames {
    /// GPUs under other names, such as `nvidia.com/h100`.
    pub others: BTreeSet<String>,
}

impl GpuNames {
    /// Whether a resource stands for GPU devices.
    pub fn is_gpu(&self, name: &str) -> bool {
        is_gpu(name) || self.others.contains(name)
    }
}

impl PodSpec {
    /// What one such pod takes, or what is wrong with what it asks for.
    pub fn request(
        &self,
        annotations: &BTreeMap<String, String>,
        gpus: &GpuNames,
    ) -> Result<Request, Vec<String>> {
        let findings = Findings::default();
        let mut totals = self.totals(gpus, &findings);
        totals.amounts.insert(PODS.into(), 1);
        totals.amounts.retain(|_, amount| *amount > 0);
        let whole = devices(&totals, &findings);
        let part = fraction(annotations, &findings);
        if whole.is_some() && part.is_some() {
            findings.push(&annotation(FRACTION), "the pod asks for whole GPUs as well: drop one");
        }
        if let Some((name, _)) = totals.amounts.iter().find(|(_, amount)| **amount > MAX_AMOUNT) {
            findings.push(&join("resources", name), "the containers together ask for too much");
        }
        findings.settle(Request { amounts: totals.amounts, gpu: whole.or(part) })
    }

    fn totals(&self, gpus: &GpuNames, findings: &Findings) -> Totals {
        let read = |container: &Container, list: &str, index: usize| {
            promised(&container.resources, &format!("{list}[{index}].resources"), gpus, findings)
        };
        let mut together = Totals::default();
        for (index, container) in self.containers.iter().enumerate() {
            together.add(&read(container, "containers", index));
        }
        let (mut sidecars, mut peak) = (Totals::default(), Totals::default());
        for (index, container) in self.init_containers.iter().enumerate() {
            let mut takes = read(container, "initContainers", index);
            if container.is_sidecar() {
                together.add(&takes);
                sidecars.add(&takes);
                peak.raise(&sidecars);
            } else {
                takes.add(&sidecars);
                peak.raise(&takes);
            }
        }
        together.raise(&peak);
        if let Some(pod) = &self.resources {
            whole_pod(pod, &mut together, gpus, findings);
        }
        together.add(&listed(entries(&self.overhead, "overhead"), gpus, findings));
        together
    }
}

/// What a container is promised.
fn promised(resources: &Resources, field: &str, gpus: &GpuNames, findings: &Findings) -> Totals {
    let found = resources.promised().map(|(list, name, amount)| {
        (join(&format!("{field}.{list}"), name), name, amount.0.as_str())
    });
    listed(found, gpus, findings)
}

/// What the pod as a whole asks for wins over its containers; a limit only where they ask for nothing.
fn whole_pod(pod: &Resources, together: &mut Totals, gpus: &GpuNames, findings: &Findings) {
    let mut limits = listed(entries(&pod.limits, "resources.limits"), gpus, findings);
    limits.amounts.retain(|name, _| !together.amounts.contains_key(name));
    limits.gpus.retain(|name, _| !together.gpus.contains_key(name));
    together.replace(limits);
    together.replace(listed(entries(&pod.requests, "resources.requests"), gpus, findings));
}

/// The devices of the one kind of GPU a pod may ask for.
fn devices(totals: &Totals, findings: &Findings) -> Option<GpuRequest> {
    let mut asked = totals.gpus.iter().filter(|(_, milli)| **milli > 0);
    let (name, milli) = asked.next()?;
    let field = join("resources", name);
    if let Some((second, _)) = asked.next() {
        findings
            .push(&field, format!("a pod asks for one kind of GPU only, not for `{second}` too"));
    }
    let Some((count, share)) = share(*milli) else {
        let rule = format!("must be a whole number of GPUs up to {}, or a part of one", u16::MAX);
        findings.push(&field, rule);
        return None;
    };
    Some(GpuRequest { resource: name.clone(), count, share })
}

/// A part of one device, or of several, asked for by annotation.
fn fraction(annotations: &BTreeMap<String, String>, findings: &Findings) -> Option<GpuRequest> {
    let written = annotations.get(FRACTION)?;
    let milli = written.parse::<Quantity>().ok().and_then(Quantity::ceil_milli);
    let milli = milli.and_then(|milli| u16::try_from(milli).ok());
    let Some(share) = milli.filter(|milli| (1..=WHOLE).contains(milli)) else {
        let rule = format!("must be above 0 and at most 1, such as 0.5, not `{written}`");
        findings.push(&annotation(FRACTION), rule);
        return None;
    };
    let devices = annotations.get(FRACTION_DEVICES);
    let devices = devices.and_then(|text| count(text, &annotation(FRACTION_DEVICES), findings));
    let count = devices.and_then(|number| u16::try_from(number).ok()).unwrap_or(1);
    Some(GpuRequest { resource: GPU.into(), count: count.max(1), share })
}

fn annotation(name: &str) -> String {
    format!("metadata.annotations[{name}]")
}
