//! RayCluster: a head and groups of workers, each group with its own bounds when the cluster autoscales.

use crate::foreign::json::Json;
use crate::foreign::json::MAX_MEMBERS;
use crate::workloads::kind::WorkloadRole;
use crate::workloads::template::role;

pub(crate) const GROUP: &str = "ray.io/group";
pub(crate) const HOST_INDEX: &str = "ray.io/replica-host-index";
/// The operator's label value for the head.
const HEAD: &str = "headgroup";

pub(crate) fn roles(spec: &Json<'_>) -> Vec<WorkloadRole> {
    let head = spec.need("headGroupSpec").and_then(|head| role(HEAD, 1, &head, "template"));
    let scales = spec.flag("enableInTreeAutoscaling") == Some(true);
    let groups = spec.list("workerGroupSpecs");
    let workers = groups.iter().filter_map(|group| workers(group, scales));
    head.into_iter().chain(workers).collect()
}

/// One group of workers. A replica is several pods for multi-host slices.
fn workers(group: &Json<'_>, scales: bool) -> Option<WorkloadRole> {
    let name = group.text("groupName");
    if name.is_none() {
        group.missing("groupName");
    }
    if group.flag("suspend") == Some(true) {
        return None;
    }
    let hosts = group.count("numOfHosts").unwrap_or(1).max(1);
    let pods = |replicas: u32| replicas.saturating_mul(hosts);
    // If absent, the operator sets the largest integer, which is no bound.
    let most = group.whole::<u32>("maxReplicas").filter(|most| pods(*most) <= MAX_MEMBERS);
    let least = group.count("minReplicas").unwrap_or(0);
    let wanted = group.count("replicas").unwrap_or(least).max(least);
    let replicas = most.map_or(wanted, |most| wanted.min(most));
    if pods(replicas) > MAX_MEMBERS {
        group.error(format!("asks for more than {MAX_MEMBERS} pods"));
        return None;
    }
    if replicas == 0 {
        return None;
    }
    let role = role(name?, pods(replicas), group, "template")?;
    // An autoscaling cluster begins with the minimum of its groups; the rest depends on its load.
    let min = Some(least).filter(|least| scales && *least > 0 && *least < replicas).map(pods);
    let max = most.filter(|most| scales && *most > replicas).map(pods);
    Some(WorkloadRole { min, max, ..role })
}
