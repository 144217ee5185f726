//! LeaderWorkerSet: groups of a leader and its workers. Every group is a gang of its own; groups are created and
//! deleted one by one. The roles are those of one group.

use crate::foreign::json::Json;
use crate::workloads::kind::WorkloadRole;
use crate::workloads::template::role;

pub(crate) const API_VERSION: &str = "leaderworkerset.x-k8s.io/v1";
pub(crate) const KIND: &str = "LeaderWorkerSet";
pub(crate) const NAME: &str = "leaderworkerset.sigs.k8s.io/name";
pub(crate) const GROUP_INDEX: &str = "leaderworkerset.sigs.k8s.io/group-index";
pub(crate) const WORKER_INDEX: &str = "leaderworkerset.sigs.k8s.io/worker-index";
const LEADER: &str = "leader";
const WORKER: &str = "worker";

/// The role of a pod with this index in its group.
pub(crate) fn role_of_index(index: &str) -> &'static str {
    if index == "0" { LEADER } else { WORKER }
}

/// A leader without a template of its own is created from the workers' template. With `startupPolicy: LeaderReady`
/// workers are created after the leader runs, so that a gang of the existing pods would be the leader alone.
pub(crate) fn roles(spec: &Json<'_>) -> Vec<WorkloadRole> {
    let Some(group) = spec.need("leaderWorkerTemplate") else { return Vec::new() };
    let size = group.count("size").unwrap_or(1);
    let of_leader =
        if group.get("leaderTemplate").is_some() { "leaderTemplate" } else { "workerTemplate" };
    let leader = role(LEADER, 1, &group, of_leader);
    let workers = (size > 1).then(|| role(WORKER, size - 1, &group, "workerTemplate")).flatten();
    leader.into_iter().chain(workers).collect()
}
