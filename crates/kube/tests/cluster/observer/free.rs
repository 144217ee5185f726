//! What is free on nodes, and which pods wait that may go anywhere.

use k8s_openapi::api::core::v1::{Node, Pod};

use super::pods::{Amounts, add, amounts, asked, has_gate, is_over, node_of};
use super::ready::ready_since;
use super::seen::Seen;

/// What is left of each node that takes any pod, by name.
pub(super) fn free(seen: &Seen) -> Vec<(String, Amounts)> {
    let mut all = Vec::new();
    for (name, node) in seen.nodes.iter().filter(|(_, node)| takes_any(node)) {
        let mut taken = Amounts::new();
        for (_, pod) in seen.at_work().filter(|(_, pod)| node_of(pod) == Some(name)) {
            add(&mut taken, &asked(pod));
        }
        let there = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
        let left = |(what, has): (String, u64)| {
            let left = has.saturating_sub(taken.get(&what).copied().unwrap_or(0));
            (what, left)
        };
        all.push((name.clone(), amounts(there).into_iter().map(left).collect()));
    }
    all
}

/// Whether a node is ready, and nothing keeps pods off it.
pub(super) fn takes_any(node: &Node) -> bool {
    let spec = node.spec.as_ref();
    let is_closed = spec.is_some_and(|spec| {
        spec.unschedulable == Some(true) || spec.taints.as_ref().is_some_and(|all| !all.is_empty())
    });
    !is_closed && node.metadata.deletion_timestamp.is_none() && ready_since(node).is_some()
}

/// Takes room for a pod on the first node that has it, and says which.
pub(super) fn take(free: &mut [(String, Amounts)], pod: &Pod) -> Option<String> {
    let wants = asked(pod);
    let has = |left: &Amounts| {
        wants.iter().all(|(what, amount)| left.get(what).is_some_and(|left| left >= amount))
    };
    let (name, left) = free.iter_mut().find(|(_, left)| has(left))?;
    for (what, amount) in &wants {
        *left.get_mut(what).expect("just seen") -= amount;
    }
    Some(name.clone())
}

/// Pods that are Muster's to put somewhere, and are nowhere.
pub(super) fn waiting(seen: &Seen) -> impl Iterator<Item = (&String, &Pod)> {
    seen.pods.iter().filter(|(key, pod)| {
        let is_free = node_of(pod).is_none() && !is_over(pod) && !has_gate(pod);
        is_free && pod.metadata.deletion_timestamp.is_none() && seen.is_musters(key, pod)
    })
}

/// Whether a pod may go wherever there is room for it.
pub(super) fn is_plain(pod: &Pod) -> bool {
    let Some(spec) = &pod.spec else { return false };
    let mut volumes = spec.volumes.iter().flatten();
    spec.node_selector.is_none()
        && spec.affinity.is_none()
        && spec.topology_spread_constraints.is_none()
        && spec.resource_claims.is_none()
        && volumes.all(|volume| volume.persistent_volume_claim.is_none())
}
