//! Reads pods: node, gate, owner, requests.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use muster_core::quantity::Quantity as Exact;

/// Muster's scheduling gate.
const GATE: &str = "muster.sh/gang";

/// Amounts in thousandths, by resource.
pub(crate) type Amounts = BTreeMap<String, u64>;

pub(crate) fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|name| !name.is_empty())
}

pub(crate) fn is_finished(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

pub(crate) fn has_gate(pod: &Pod) -> bool {
    let gates = pod.spec.as_ref().and_then(|spec| spec.scheduling_gates.as_ref());
    gates.is_some_and(|gates| gates.iter().any(|gate| gate.name == GATE))
}

/// Whether a pod was evicted to make room (`DisruptionTarget`).
pub(crate) fn is_evicted(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|one| one.type_ == "DisruptionTarget" && one.status == "True")
}

/// A value that may be an annotation or a label.
pub(crate) fn label_or_annotation<'a>(pod: &'a Pod, name: &str) -> Option<&'a String> {
    pod.annotations().get(name).or_else(|| pod.labels().get(name))
}

/// The controlling owner of an object.
pub(crate) fn controller_of(object: &impl ResourceExt) -> Option<&OwnerReference> {
    object.owner_references().iter().find(|owner| owner.controller == Some(true))
}

/// The requests of a pod, as Kubernetes sums them: containers and sidecars run together, each init container beside the
/// sidecars that were started before it, and the larger of the two counts. Pod-level resources replace that sum, and
/// the overhead is added.
pub(crate) fn requests_of(pod: &Pod) -> Amounts {
    let Some(spec) = &pod.spec else { return Amounts::new() };
    let mut together = Amounts::new();
    for container in &spec.containers {
        add(&mut together, &of_container(container));
    }
    let (mut sidecars, mut peak) = (Amounts::new(), Amounts::new());
    for container in spec.init_containers.iter().flatten() {
        let mut takes = of_container(container);
        if container.restart_policy.as_deref() == Some("Always") {
            add(&mut together, &takes);
            add(&mut sidecars, &takes);
            raise(&mut peak, &sidecars);
        } else {
            add(&mut takes, &sidecars);
            raise(&mut peak, &takes);
        }
    }
    raise(&mut together, &peak);
    if let Some(whole) = &spec.resources {
        for (what, limit) in amounts(whole.limits.as_ref()) {
            together.entry(what).or_insert(limit);
        }
        together.extend(amounts(whole.requests.as_ref()));
    }
    add(&mut together, &amounts(spec.overhead.as_ref()));
    together.insert("pods".to_owned(), 1_000);
    together
}

pub(crate) fn add(to: &mut Amounts, more: &Amounts) {
    for (what, amount) in more {
        *to.entry(what.clone()).or_default() += amount;
    }
}

fn raise(to: &mut Amounts, least: &Amounts) {
    for (what, amount) in least {
        let there = to.entry(what.clone()).or_default();
        *there = (*there).max(*amount);
    }
}

fn of_container(container: &Container) -> Amounts {
    promised(container.resources.as_ref())
}

/// Requests, and limits where there are none.
fn promised(resources: Option<&ResourceRequirements>) -> Amounts {
    let Some(resources) = resources else { return Amounts::new() };
    let mut all = amounts(resources.limits.as_ref());
    all.extend(amounts(resources.requests.as_ref()));
    all
}

pub(crate) fn amounts(all: Option<&BTreeMap<String, Quantity>>) -> Amounts {
    let all = all.into_iter().flatten();
    all.map(|(what, quantity)| (what.clone(), thousandths(&quantity.0))).collect()
}

/// A quantity in thousandths, rounded up.
pub(crate) fn thousandths(text: &str) -> u64 {
    text.parse::<Exact>().ok().and_then(Exact::ceil_milli).unwrap_or(0)
}
