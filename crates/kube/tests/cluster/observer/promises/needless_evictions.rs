//! No member of a gang that keeps running is evicted while the gang has an empty seat, or while all waiting pods fit.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::Value;

use super::super::free_capacity::{free, is_plain, take, takes_any, waiting};
use super::super::pod_fields::{controller_of, is_finished, label_or_annotation, node_of};
use super::super::snapshot::Snapshot;
use super::super::suspected::{LATE, Moment, Suspected};

#[derive(Default)]
pub(crate) struct NeedlessEvictions {
    /// Since when all waiting pods fit.
    roomy: Option<Instant>,
    /// Since when a gang has more seats than bound members.
    empty: BTreeMap<String, Instant>,
    reported: BTreeSet<String>,
    suspected: Suspected<Gone>,
}

/// An evicted member, its gang, and the objection.
struct Gone {
    pod: String,
    gang: String,
    though: &'static str,
}

impl NeedlessEvictions {
    /// A pod was evicted.
    pub(crate) fn evicted(&mut self, snapshot: &Snapshot, key: &str, pod: &Pod, now: Moment) {
        let node = node_of(pod).and_then(|node| snapshot.nodes.get(node));
        let is_new = pod.uid().is_some_and(|uid| self.reported.insert(uid));
        let Some(gang) = gang_object(pod).filter(|_| is_new && node.is_some_and(takes_any)) else {
            return;
        };
        let is_old = |since: Option<&Instant>| since.is_some_and(|since| now.tick - *since > LATE);
        let though = match (is_old(self.roomy.as_ref()), is_old(self.empty.get(&gang))) {
            (true, _) => "there was room for all that waited",
            (_, true) => "its gang had an empty seat",
            (false, false) => return,
        };
        self.suspected.add(now, Gone { pod: key.to_owned(), gang, though });
    }

    pub(crate) fn check(&mut self, snapshot: &Snapshot, now: Moment) -> Vec<String> {
        self.roomy = is_roomy(snapshot).then(|| self.roomy.unwrap_or(now.tick));
        let mut seated: BTreeMap<String, u64> = BTreeMap::new();
        for gang in snapshot.running_pods().filter_map(|(_, pod)| gang_object(pod)) {
            *seated.entry(gang).or_default() += 1;
        }
        let empty = snapshot.gangs.iter().filter(|(key, gang)| {
            let placement = gang.data.pointer("/status/placement").and_then(Value::as_array);
            let seats = placement.into_iter().flatten().filter_map(|one| one["members"].as_u64());
            seats.sum::<u64>() > seated.get(*key).copied().unwrap_or(0)
        });
        let empty: BTreeSet<String> = empty.map(|(key, _)| key.clone()).collect();
        self.empty.retain(|gang, _| empty.contains(gang));
        for gang in empty {
            self.empty.entry(gang).or_insert(now.tick);
        }
        self.suspected.settle(now, |_, Gone { pod, gang, though }| {
            // Every member of a gang that is preempted whole is evicted.
            let mut left = snapshot.running_pods().filter(|(_, pod)| !is_leaving(pod));
            let goes_on = left.any(|(_, pod)| gang_object(pod).as_ref() == Some(gang));
            goes_on.then(|| format!("{pod} was evicted though {though}"))
        })
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.suspected.is_empty()
    }
}

fn is_leaving(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some() || is_finished(pod)
}

/// Whether pods wait and all of them fit at once. Clusters with queue limits are not checked.
fn is_roomy(snapshot: &Snapshot) -> bool {
    let mut left = free(snapshot);
    let mut waiting = waiting(snapshot).peekable();
    snapshot.queues.is_empty()
        && waiting.peek().is_some()
        && waiting.all(|(_, pod)| is_plain(pod) && take(&mut left, pod).is_some())
}

/// The key of a pod's Gang: the one that it names, or the one named after its owner.
fn gang_object(pod: &Pod) -> Option<String> {
    let namespace = pod.namespace()?;
    if let Some(gang) = label_or_annotation(pod, "muster.sh/gang") {
        return Some(format!("{namespace}/{gang}"));
    }
    let owner = controller_of(pod)?;
    Some(format!("{namespace}/{}.{}", owner.name, owner.kind.to_lowercase()))
}
