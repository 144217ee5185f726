//! Finds the owner of a pod that is its gang.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::workloads::kind::{WorkloadKind, kind_of};
use crate::workloads::lws;

/// An owner reference.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerRef {
    /// Its API group and version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its UID, which tells it from others that had the name.
    pub uid: String,
    /// Whether it is the controller of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
}

/// The owner whose pods are one gang.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct GangOwner {
    /// Its kind.
    pub kind: WorkloadKind,
    /// Its index in the given chain.
    pub at: usize,
    /// The gang's name, unique among workloads of that kind and namespace: the owner's name, with the index of the
    /// group where each group is a gang.
    pub gang: String,
    /// The index in the chain of the owner whose templates define the roles. A TrainJob has none, but the JobSet it
    /// creates does.
    pub templates: usize,
}

/// The owner that a pod's labels name, for chains through kinds that are not watched: a LeaderWorkerSet's pods are
/// created by StatefulSets, and those of its workers are owned by the leader's pod.
pub fn named_owner(labels: &BTreeMap<String, String>) -> Option<OwnerRef> {
    Some(OwnerRef {
        api_version: lws::API_VERSION.to_owned(),
        kind: lws::KIND.to_owned(),
        name: labels.get(lws::NAME)?.clone(),
        ..OwnerRef::default()
    })
}

/// The gang of a pod, given its owners from the nearest to the farthest, and its labels. The topmost known owner
/// counts: TrainJob before JobSet before Job. Unknown owners are skipped, so that a Job created by a CronJob is a gang
/// and the CronJob, whose Jobs are not meant to run together, is not.
///
/// `None` for a single pod: one without owners, or of a Deployment, a StatefulSet or the like.
pub fn gang_owner(chain: &[OwnerRef], labels: &BTreeMap<String, String>) -> Option<GangOwner> {
    let kind_at = |at: usize| kind_of(&chain[at].api_version, &chain[at].kind);
    // A pod can own others: a LeaderWorkerSet's leader owns its workers. It is never the gang.
    let known = |at: usize| kind_at(at).filter(|kind| *kind != WorkloadKind::Pod);
    let (at, kind) = (0..chain.len()).rev().find_map(|at| Some((at, known(at)?)))?;
    let name = &chain[at].name;
    let gang = match (kind, labels.get(lws::GROUP_INDEX)) {
        (WorkloadKind::LeaderWorkerSet, Some(index)) => format!("{name}-{index}"),
        _ => name.clone(),
    };
    let inner = (0..at).rev().find(|at| known(*at).is_some());
    let templates = inner.filter(|_| kind == WorkloadKind::TrainJob).unwrap_or(at);
    Some(GangOwner { kind, at, gang, templates })
}
