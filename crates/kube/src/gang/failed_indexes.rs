//! Indexes of a Job that failed for good while others go on.
//!
//! With `backoffLimitPerIndex` a Job gives up an index that failed too often, and creates no pod for it again: the member is
//! as finished as one that succeeded, and its seat is given up. The result of the whole Job is up to the Job controller.

use std::sync::Arc;

use kube::api::DynamicObject;
use muster_api::workloads::{self, WorkloadKind};
use serde_json::Value;

use crate::cache::kinds::KindRole;
use crate::cache::store::ObjectChange;
use crate::gang::build::labels_and_annotations;
use crate::gang::source::controller_of;
use crate::host::Host;
use crate::objects::pod::Pod;

/// An index that its Job has given up: the Job's name, and the index.
pub(crate) type FailedIndex = (Arc<str>, u32);

impl Host {
    /// The index of a failed pod, if its Job has given it up.
    pub(crate) fn failed_index_of(&self, pod: &Pod) -> Option<FailedIndex> {
        if pod.status.phase != "Failed" {
            return None;
        }
        let owner = pod.metadata.owner_references.as_deref().and_then(controller_of)?;
        if workloads::kind_of(&owner.api_version, &owner.kind) != Some(WorkloadKind::Job) {
            return None;
        }
        let index = workloads::index_of_pod(WorkloadKind::Job, labels_and_annotations(pod).0)?;
        let namespace = pod.metadata.namespace.as_deref()?;
        let job = self.object(KindRole::Workload(WorkloadKind::Job), namespace, &owner.name)?;
        let is_its = job.metadata.uid.as_deref() == Some(&*owner.uid);
        (is_its && is_among(failed(job), index)).then(|| (owner.name.into(), index))
    }

    /// Requeues the gangs of the workloads above a Job that has given up indexes.
    pub(crate) fn observe_failed_indexes(&mut self, moved: &ObjectChange<DynamicObject>) {
        let Some(job) = &moved.is else { return };
        let before = moved.was.as_deref().map_or("", failed);
        if before == failed(job) {
            return;
        }
        let namespace = job.metadata.namespace.as_deref().unwrap_or_default();
        let above = self.owner_chain(namespace, job.metadata.owner_references.as_deref());
        for owner in above {
            if let Some(kind) = workloads::kind_of(&owner.api_version, &owner.kind) {
                self.requeue_gangs_of(KindRole::Workload(kind), namespace, &owner.name);
            }
        }
    }
}

/// The indexes that a Job has given up, as it writes them.
fn failed(job: &DynamicObject) -> &str {
    job.data.pointer("/status/failedIndexes").and_then(Value::as_str).unwrap_or_default()
}

/// Whether an index is in a list like `1,3-5,7`. Invalid parts of the list are ignored.
fn is_among(written: &str, index: u32) -> bool {
    written.split(',').any(|part| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        match (from.trim().parse::<u32>(), to.trim().parse::<u32>()) {
            (Ok(from), Ok(to)) => (from..=to).contains(&index),
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use crate::gang::failed_indexes::*;

    #[test]
    fn failed_indexes_are_parsed_as_numbers_and_ranges() {
        let among: Vec<u32> = (0..10).filter(|index| is_among("1,3-5,7", *index)).collect();
        assert_eq!(among, [1, 3, 4, 5, 7]);
        for nonsense in ["", ",", "-", "a-b", "5-3", "99999999999", "1-"] {
            assert!((0..10).all(|index| !is_among(nonsense, index)), "{nonsense}");
        }
    }
}
