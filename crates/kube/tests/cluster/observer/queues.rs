//! What runs in a queue and in those below it stays within its limit.
//!
//! As with pools, the widest limit that a queue ever had is what counts.

use std::collections::BTreeMap;

use kube::ResourceExt;
use kube::api::DynamicObject;

use super::doubts::{Doubts, Moment};
use super::gangs::object_of;
use super::pods::{Amounts, add, asked, mark, thousandths};
use super::seen::Seen;

/// No tree of queues is that high; one that is has a loop.
const HIGHEST: usize = 16;

#[derive(Default)]
pub(super) struct Queues {
    /// The widest limit that each queue ever had. What is not listed has none.
    limits: BTreeMap<String, Amounts>,
    doubts: Doubts<Taken>,
}

/// What a queue had when somebody of it was put on a node.
struct Taken {
    queue: String,
    taken: Amounts,
    last: String,
}

impl Queues {
    pub(super) fn see(&mut self, queue: &DynamicObject) {
        let limit = queue.data["spec"]["limit"].as_object().into_iter().flatten();
        let said: Amounts = limit
            .map(|(what, amount)| {
                let text = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
                (what.clone(), thousandths(&text))
            })
            .collect();
        match self.limits.get_mut(&queue.name_any()) {
            Some(widest) => {
                widest.retain(|what, _| said.contains_key(what));
                for (what, amount) in widest {
                    *amount = (*amount).max(said[what]);
                }
            }
            None => drop(self.limits.insert(queue.name_any(), said)),
        }
    }

    /// Somebody has just been put on a node: every queue that counts it in has so much.
    pub(super) fn bound(&mut self, seen: &Seen, pod: &str, now: Moment) {
        for queue in above(seen, queue_of(seen, pod)) {
            let mut taken = Amounts::new();
            for (key, pod) in seen.at_work() {
                if above(seen, queue_of(seen, key)).any(|one| one == queue) {
                    add(&mut taken, &asked(pod));
                }
            }
            self.doubts.add(now, Taken { queue: queue.to_owned(), taken, last: pod.to_owned() });
        }
    }

    pub(super) fn look(&mut self, now: Moment) -> Vec<String> {
        let limits = &self.limits;
        self.doubts.settle(now, |_, Taken { queue, taken, last }| {
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

    pub(super) fn is_settled(&self) -> bool {
        self.doubts.is_empty()
    }
}

/// The queue that a pod is in: its Gang says it, or the pod does.
fn queue_of<'a>(seen: &'a Seen, key: &str) -> Option<&'a str> {
    let pod = seen.pods.get(key).filter(|pod| seen.is_musters(key, pod))?;
    let of_gang = object_of(seen, pod).and_then(|spec| spec["queue"].as_str());
    of_gang.or_else(|| mark(pod, "muster.sh/queue").map(|queue| &**queue))
}

/// A queue and those that it is in.
fn above<'a>(seen: &'a Seen, queue: Option<&'a str>) -> impl Iterator<Item = &'a str> {
    let parent = |queue: &&str| seen.queues.get(*queue)?.data["spec"]["parent"].as_str();
    std::iter::successors(queue, parent).take(HIGHEST)
}

/// GPUs of every vendor count together.
fn amount_of(taken: &Amounts, what: &str) -> u64 {
    let is_it = |one: &str| one == what || (one.ends_with("/gpu") && what.ends_with("/gpu"));
    taken.iter().filter(|(one, _)| is_it(one)).map(|(_, amount)| amount).sum()
}
