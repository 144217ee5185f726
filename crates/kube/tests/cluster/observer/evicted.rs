//! No member of a gang that goes on is evicted while the gang has an empty seat, or while there is room for all that waits.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::Value;

use super::doubts::{Doubts, LATE, Moment};
use super::free::{free, is_plain, take, takes_any, waiting};
use super::pods::{is_over, maker, mark, node_of};
use super::seen::Seen;

#[derive(Default)]
pub(super) struct Evicted {
    /// Since when there is room for all that waits.
    roomy: Option<Instant>,
    /// Since when a gang has more seats than members on nodes.
    empty: BTreeMap<String, Instant>,
    told: BTreeSet<String>,
    doubts: Doubts<Gone>,
}

/// A member that was evicted, of which gang, and what speaks against it.
struct Gone {
    pod: String,
    gang: String,
    though: &'static str,
}

impl Evicted {
    /// A pod was told to make way for others.
    pub(super) fn sent_away(&mut self, seen: &Seen, key: &str, pod: &Pod, now: Moment) {
        let node = node_of(pod).and_then(|node| seen.nodes.get(node));
        let is_new = pod.uid().is_some_and(|uid| self.told.insert(uid));
        let Some(gang) = gang_object(pod).filter(|_| is_new && node.is_some_and(takes_any)) else {
            return;
        };
        let is_old = |since: Option<&Instant>| since.is_some_and(|since| now.tick - *since > LATE);
        let though = match (is_old(self.roomy.as_ref()), is_old(self.empty.get(&gang))) {
            (true, _) => "there was room for all that waited",
            (_, true) => "its gang had an empty seat",
            (false, false) => return,
        };
        self.doubts.add(now, Gone { pod: key.to_owned(), gang, though });
    }

    pub(super) fn look(&mut self, seen: &Seen, now: Moment) -> Vec<String> {
        self.roomy = is_roomy(seen).then(|| self.roomy.unwrap_or(now.tick));
        let mut seated: BTreeMap<String, u64> = BTreeMap::new();
        for gang in seen.at_work().filter_map(|(_, pod)| gang_object(pod)) {
            *seated.entry(gang).or_default() += 1;
        }
        let empty = seen.gangs.iter().filter(|(key, gang)| {
            let placement = gang.data.pointer("/status/placement").and_then(Value::as_array);
            let seats = placement.into_iter().flatten().filter_map(|one| one["members"].as_u64());
            seats.sum::<u64>() > seated.get(*key).copied().unwrap_or(0)
        });
        let empty: BTreeSet<String> = empty.map(|(key, _)| key.clone()).collect();
        self.empty.retain(|gang, _| empty.contains(gang));
        for gang in empty {
            self.empty.entry(gang).or_insert(now.tick);
        }
        self.doubts.settle(now, |_, Gone { pod, gang, though }| {
            // Of a gang that is stopped as a whole every member goes.
            let mut left = seen.at_work().filter(|(_, pod)| !is_leaving(pod));
            let goes_on = left.any(|(_, pod)| gang_object(pod).as_ref() == Some(gang));
            goes_on.then(|| format!("{pod} was evicted though {though}"))
        })
    }

    pub(super) fn is_settled(&self) -> bool {
        self.doubts.is_empty()
    }
}

fn is_leaving(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some() || is_over(pod)
}

/// Whether something waits, and there is room for all of it at once. What waits under a limit is not looked at.
fn is_roomy(seen: &Seen) -> bool {
    let mut left = free(seen);
    let mut waiting = waiting(seen).peekable();
    seen.queues.is_empty()
        && waiting.peek().is_some()
        && waiting.all(|(_, pod)| is_plain(pod) && take(&mut left, pod).is_some())
}

/// The object of a pod's gang: the Gang it names, or the one that is called after what made it.
fn gang_object(pod: &Pod) -> Option<String> {
    let namespace = pod.namespace()?;
    if let Some(gang) = mark(pod, "muster.sh/gang") {
        return Some(format!("{namespace}/{gang}"));
    }
    let owner = maker(pod)?;
    Some(format!("{namespace}/{}.{}", owner.name, owner.kind.to_lowercase()))
}
