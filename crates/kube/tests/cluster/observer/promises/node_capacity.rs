//! Bound pods never request more than the allocatable resources of their node.

use super::super::pod_fields::{Amounts, add, amounts, node_of, requests_of};
use super::super::snapshot::Snapshot;
use super::super::suspected::{Moment, Suspected};

/// Requests on each node at the time of a binding.
#[derive(Default)]
pub(crate) struct NodeCapacity {
    suspected: Suspected<Taken>,
}

struct Taken {
    node: String,
    taken: Amounts,
    last: String,
}

impl NodeCapacity {
    pub(crate) fn bound(&mut self, snapshot: &Snapshot, pod: &str, node: &str, now: Moment) {
        let mut taken = Amounts::new();
        for (_, pod) in snapshot.running_pods().filter(|(_, pod)| node_of(pod) == Some(node)) {
            add(&mut taken, &requests_of(pod));
        }
        self.suspected.add(now, Taken { node: node.to_owned(), taken, last: pod.to_owned() });
    }

    pub(crate) fn check(&mut self, snapshot: &Snapshot, now: Moment) -> Vec<String> {
        self.suspected.settle(now, |_, Taken { node, taken, last }| {
            let Some(there) = snapshot.nodes.get(node) else {
                return Some(format!("{last} was bound to {node}, which has nothing"));
            };
            let there = there.status.as_ref().and_then(|status| status.allocatable.as_ref());
            let there = amounts(there);
            let has = |what: &str| there.get(what).copied().unwrap_or(0);
            let (what, taken) = taken.iter().find(|(what, taken)| **taken > has(what))?;
            let there = has(what);
            Some(format!(
                "{node} has {there} thousandths of {what} and {taken} are taken, by {last} last"
            ))
        })
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.suspected.is_empty()
    }
}
