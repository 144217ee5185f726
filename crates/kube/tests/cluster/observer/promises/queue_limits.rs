//! Pods of a queue and of its children never exceed its limit.
//!
//! As with pools, the highest limit that a queue ever had counts.

use std::collections::BTreeMap;

use kube::ResourceExt;
use kube::api::DynamicObject;

use super::super::gang_membership::object_of;
use super::super::pod_fields::{Amounts, add, label_or_annotation, requests_of, thousandths};
use super::super::snapshot::Snapshot;
use super::super::suspected::{Moment, Suspected};

/// No tree of queues is this deep; a deeper one has a loop.
const HIGHEST: usize = 16;

#[derive(Default)]
pub(crate) struct QueueLimits {
    /// The highest limit that each queue ever had. A resource that is not listed has none.
    limits: BTreeMap<String, Amounts>,
    suspected: Suspected<Taken>,
}

/// The requests of a queue when one of its pods was bound.
struct Taken {
    queue: String,
    taken: Amounts,
    last: String,
}

impl QueueLimits {
    pub(crate) fn see(&mut self, queue: &DynamicObject) {
        let limit = queue.data["spec"]["limit"].as_object().into_iter().flatten();
        let limits_now: Amounts = limit
            .map(|(what, amount)| {
                let text = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
                (what.clone(), thousandths(&text))
            })
            .collect();
        match self.limits.get_mut(&queue.name_any()) {
            Some(widest) => {
                widest.retain(|what, _| limits_now.contains_key(what));
                for (what, amount) in widest {
                    *amount = (*amount).max(limits_now[what]);
                }
            }
            None => drop(self.limits.insert(queue.name_any(), limits_now)),
        }
    }

    /// A pod has just been bound: sums the requests of its queue and of every queue above.
    pub(crate) fn bound(&mut self, snapshot: &Snapshot, pod: &str, now: Moment) {
        for queue in above(snapshot, queue_of(snapshot, pod)) {
            let mut taken = Amounts::new();
            for (key, pod) in snapshot.running_pods() {
                if above(snapshot, queue_of(snapshot, key)).any(|one| one == queue) {
                    add(&mut taken, &requests_of(pod));
                }
            }
            self.suspected.add(now, Taken { queue: queue.to_owned(), taken, last: pod.to_owned() });
        }
    }

    pub(crate) fn check(&mut self, now: Moment) -> Vec<String> {
        let limits = &self.limits;
        self.suspected.settle(now, |_, Taken { queue, taken, last }| {
            let over = limits.get(queue)?.iter().find_map(|(what, limit)| {
                let has = amount_of(taken, what);
                (has > *limit).then_some((what, has, limit))
            });
            let (what, has, limit) = over?;
            Some(format!(
                "the queue {queue} has {has} of {limit} thousandths of {what}, with {last}"
            ))
        })
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.suspected.is_empty()
    }
}

/// The queue of a pod: from its Gang, or from the pod.
fn queue_of<'a>(snapshot: &'a Snapshot, key: &str) -> Option<&'a str> {
    let pod = snapshot.pods.get(key).filter(|pod| snapshot.is_scheduled_by_muster(key, pod))?;
    let of_gang = object_of(snapshot, pod).and_then(|spec| spec["queue"].as_str());
    of_gang.or_else(|| label_or_annotation(pod, "muster.sh/queue").map(|queue| &**queue))
}

/// A queue and its ancestors.
fn above<'a>(snapshot: &'a Snapshot, queue: Option<&'a str>) -> impl Iterator<Item = &'a str> {
    let parent = |queue: &&str| snapshot.queues.get(*queue)?.data["spec"]["parent"].as_str();
    std::iter::successors(queue, parent).take(HIGHEST)
}

/// GPUs of every vendor count together.
fn amount_of(taken: &Amounts, what: &str) -> u64 {
    let is_it = |one: &str| one == what || (one.ends_with("/gpu") && what.ends_with("/gpu"));
    taken.iter().filter(|(one, _)| is_it(one)).map(|(_, amount)| amount).sum()
}
