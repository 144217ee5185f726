//! Free capacity of nodes, and waiting pods that any node may take.

use k8s_openapi::api::core::v1::{Node, Pod};

use super::pod_fields::{Amounts, add, amounts, has_gate, is_finished, node_of, requests_of};
use super::promises::ready_since;
use super::snapshot::Snapshot;

/// Free amounts of each node that takes any pod, by name.
pub(crate) fn free(snapshot: &Snapshot) -> Vec<(String, Amounts)> {
    let mut all = Vec::new();
    for (name, node) in snapshot.nodes.iter().filter(|(_, node)| takes_any(node)) {
        let mut taken = Amounts::new();
        for (_, pod) in snapshot.running_pods().filter(|(_, pod)| node_of(pod) == Some(name)) {
            add(&mut taken, &requests_of(pod));
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

/// Whether a node is ready, without a cordon or a taint.
pub(crate) fn takes_any(node: &Node) -> bool {
    let spec = node.spec.as_ref();
    let is_closed = spec.is_some_and(|spec| {
        spec.unschedulable == Some(true) || spec.taints.as_ref().is_some_and(|all| !all.is_empty())
    });
    !is_closed && node.metadata.deletion_timestamp.is_none() && ready_since(node).is_some()
}

/// Subtracts the requests of a pod from the first node where it fits, and returns the node.
pub(crate) fn take(free: &mut [(String, Amounts)], pod: &Pod) -> Option<String> {
    let wants = requests_of(pod);
    let has = |left: &Amounts| {
        wants.iter().all(|(what, amount)| left.get(what).is_some_and(|left| left >= amount))
    };
    let (name, left) = free.iter_mut().find(|(_, left)| has(left))?;
    for (what, amount) in &wants {
        *left.get_mut(what).expect("just seen") -= amount;
    }
    Some(name.clone())
}

/// Unbound pods that Muster schedules.
pub(crate) fn waiting(snapshot: &Snapshot) -> impl Iterator<Item = (&String, &Pod)> {
    snapshot.pods.iter().filter(|(key, pod)| {
        let is_free = node_of(pod).is_none() && !is_finished(pod) && !has_gate(pod);
        is_free
            && pod.metadata.deletion_timestamp.is_none()
            && snapshot.is_scheduled_by_muster(key, pod)
    })
}

/// Whether a pod has no selector, affinity, spread or claim.
pub(crate) fn is_plain(pod: &Pod) -> bool {
    let Some(spec) = &pod.spec else { return false };
    let mut volumes = spec.volumes.iter().flatten();
    spec.node_selector.is_none()
        && spec.affinity.is_none()
        && spec.topology_spread_constraints.is_none()
        && spec.resource_claims.is_none()
        && volumes.all(|volume| volume.persistent_volume_claim.is_none())
}
